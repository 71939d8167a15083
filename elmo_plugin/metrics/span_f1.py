from collections import Counter
from typing import Any, Callable, Collection, Dict, Iterable, NamedTuple, Tuple

from overrides import overrides

from elmo_plugin.metrics.f1 import precision_recall_f1
from elmo_plugin.metrics.summed_metric import SummedMetric

OVERALL = "overall"


class Counts(NamedTuple):
    """Numbers of spans: those predicted that are gold, all predicted and all gold ones."""

    true_positives: int
    predicted: int
    gold: int

    def scores(self) -> Tuple[float, float, float]:
        """Precision, recall and F1."""
        num_correct = self.true_positives
        return precision_recall_f1(num_correct, self.predicted, num_correct, self.gold)


class SpanF1(SummedMetric):
    """
    Precision, recall and F1 by label, for metrics that differ in what a span is: a subclass gives
    the spans of each sentence to `add`.
    """

    #: Labels that have their own scores but are not counted in the overall scores.
    separate: Collection[str] = ()
    #: The heading of each column of counts in the table, and its value for a row.
    columns: Dict[str, Callable[[Counts], int]]

    def add(self, predicted: Iterable[Tuple[str, Any]], gold: Iterable[Tuple[str, Any]]) -> None:
        """
        # Parameters

        predicted, gold : `Iterable[Tuple[str, Any]]`
            Label and position of each span of a sentence. A predicted span is a true positive if
            a gold span has the same label and position.
        """
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
        scores = {}
        for label, row in self.rows(sums).items():
            for name, score in zip(("precision", "recall", "f1-measure"), row.scores()):
                scores[f"{name}-{label}"] = score
        return scores

    def table(self) -> str:
        """
        # Returns

        `str`
            A heading, a line for all spans and one for each label: `columns`, and precision,
            recall and F1 in percent. Counts are summed over all processes, so every process must
            call this.
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
