from collections import Counter
from typing import Any, Callable, Collection, Dict, Iterable, NamedTuple, Tuple

from allennlp.training.metrics import Metric
from overrides import overrides

from elmo_plugin.util.distributed import gathered

OVERALL = "overall"


def quotient(part: float, whole: float) -> float:
    """`part / whole`, or 0 if `whole` is 0."""
    return part / whole if whole else 0.0


def precision_recall_f1(
    precision_numerator: float,
    precision_denominator: float,
    recall_numerator: float,
    recall_denominator: float,
) -> Tuple[float, float, float]:
    """Precision, recall and F1, their harmonic mean. Quotients with a zero denominator are 0."""
    precision = quotient(precision_numerator, precision_denominator)
    recall = quotient(recall_numerator, recall_denominator)
    return precision, recall, quotient(2 * precision * recall, precision + recall)


class SummedMetric(Metric):
    """A metric of sums over all processes. Subclasses add to `_sums`, and define `scores`."""

    def __init__(self) -> None:
        self._sums: Any = Counter()

    def sums(self) -> Counter:
        """The sums over all processes. Every process must call this."""
        # Processes may have different keys, so that their sums cannot be added as one tensor.
        total: Counter = Counter()
        for sums in gathered(self._sums):
            total.update(sums)
        return total

    def scores(self, sums: Counter) -> Dict[str, float]:
        raise NotImplementedError

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """The scores of the instances so far. Every process must call this."""
        scores = self.scores(self.sums())
        if reset:
            self.reset()
        return scores

    @overrides
    def reset(self) -> None:
        self._sums.clear()


class Counts(NamedTuple):
    """Numbers of spans."""

    true_positives: int
    predicted: int
    gold: int

    def scores(self) -> Tuple[float, float, float]:
        """Precision, recall and F1."""
        num_correct = self.true_positives
        return precision_recall_f1(num_correct, self.predicted, num_correct, self.gold)


class SpanF1(SummedMetric):
    """
    Precision, recall and F1 by label. A subclass passes what it counts as spans to `add`.
    AllenNLP's `SpanBasedF1Measure` counts differently from the official scorers.
    """

    #: Labels that have their own scores but are not counted in the overall scores.
    separate: Collection[str] = ()
    #: The heading of each column of counts in the table, and its value for a row.
    columns: Dict[str, Callable[[Counts], int]]

    def add(self, predicted: Iterable[Tuple[str, Any]], gold: Iterable[Tuple[str, Any]]) -> None:
        """Counts a sentence's spans by label and position; a true positive matches in both."""
        predicted, gold = set(predicted), set(gold)
        for field, spans in zip(Counts._fields, (predicted & gold, predicted, gold)):
            self._sums.update((label, field) for label, _ in spans)

    def rows(self, sums: Counter) -> Dict[str, Counts]:
        """The counts by label: overall, then sorted labels, then separate ones."""
        labels = {label for label, field in sums if field in Counts._fields}
        rows = {
            label: Counts(*(sums[label, field] for field in Counts._fields))
            for label in sorted(labels, key=lambda label: (label in self.separate, label))
        }
        counted = [row for label, row in rows.items() if label not in self.separate]
        # A corpus may have a label of that name: the sum of all labels takes its place.
        rows.pop(OVERALL, None)
        return {OVERALL: Counts(*map(sum, zip((0, 0, 0), *counted))), **rows}

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """
        `precision-overall`, `recall-overall`, `f1-measure-overall`, and the same by label, such as
        `f1-measure-PER`. Fractions, not percentages. Empty if nothing was counted.
        """
        return {
            f"{name}-{label}": score
            for label, row in self.rows(sums).items()
            for name, score in zip(("precision", "recall", "f1-measure"), row.scores())
            if sums
        }

    def table(self) -> str:
        """
        `columns`, and precision, recall and F1 in percent: a heading, a line for all spans, and one
        per label. Every process must call this.
        """
        rows = self.rows(self.sums())
        width = max(10, *map(len, rows))
        headings = (*self.columns, "prec.", "rec.", "F1")
        lines = [" " * width + " " + "".join(f"{heading:>8}" for heading in headings)]
        for label, row in rows.items():
            name = label.capitalize() if label == OVERALL else label
            counts = "".join(f"{column(row):8d}" for column in self.columns.values())
            percentages = "".join(f"{100 * score:8.2f}" for score in row.scores())
            lines.append(f"{name:>{width}} {counts}{percentages}")
        return "\n".join(lines)
