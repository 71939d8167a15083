from collections import Counter
from typing import Any, Callable, Collection, Dict, Iterable, Iterator, List, NamedTuple, Tuple

from elmo_plugin.metrics.f1 import precision_recall_f1
from elmo_plugin.util.distributed import gathered

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


class SpanCounts:
    """
    True positives, predicted and gold spans per label, for metrics that differ in what a span is.

    # Parameters

    separate : `Collection[str]`, optional (default = `()`)
        Labels that have their own scores but are not counted in the overall scores.
    """

    def __init__(self, separate: Collection[str] = ()) -> None:
        self._separate = separate
        self._counters: Tuple[Counter, ...] = tuple(Counter() for _ in Counts._fields)

    def add(self, predicted: Iterable[Tuple[str, Any]], gold: Iterable[Tuple[str, Any]]) -> None:
        """
        # Parameters

        predicted, gold : `Iterable[Tuple[str, Any]]`
            Label and position of each span of a sentence. A predicted span is a true positive if
            a gold span has the same label and position.
        """
        predicted, gold = set(predicted), set(gold)
        for counter, spans in zip(self._counters, (predicted & gold, predicted, gold)):
            counter.update(label for label, _ in spans)

    def rows(self) -> Dict[str, Counts]:
        """
        The counts by label: overall, then sorted labels, then separate ones. Summed over all
        processes, each of which has to call this.
        """
        counters = sum_counters(self._counters)
        labels = sorted(set().union(*counters), key=lambda label: (label in self._separate, label))
        rows = {label: Counts(*(counter[label] for counter in counters)) for label in labels}
        counted = [row for label, row in rows.items() if label not in self._separate]
        # A corpus may have a label of that name: the sum of all labels takes its place.
        rows.pop(OVERALL, None)
        return {OVERALL: Counts(*map(sum, zip((0, 0, 0), *counted))), **rows}

    def scores(self) -> Dict[str, float]:
        """`precision-<label>`, `recall-<label>` and `f1-measure-<label>`, as fractions."""
        scores = {}
        for label, row in self.rows().items():
            for name, score in zip(("precision", "recall", "f1-measure"), row.scores()):
                scores[f"{name}-{label}"] = score
        return scores

    def table(self, columns: Dict[str, Callable[[Counts], int]]) -> List[str]:
        """
        # Parameters

        columns : `Dict[str, Callable[[Counts], int]]`
            The heading of each column of counts, and its value for a row.

        # Returns

        `List[str]`
            The lines: a heading, one for overall and one per label. The last three columns are
            precision, recall and F1 in percent.
        """
        rows = self.rows()
        width = max(10, *map(len, rows))
        headings = (*columns, "prec.", "rec.", "F1")
        lines = [" " * width + " " + "".join(f"{heading:>8}" for heading in headings)]
        for label, row in rows.items():
            name = label.capitalize() if label == OVERALL else label
            counts = "".join(f"{column(row):8d}" for column in columns.values())
            percentages = "".join(f"{100 * score:8.2f}" for score in row.scores())
            lines.append(f"{name:>{width}} {counts}{percentages}")
        return lines

    def reset(self) -> None:
        """Sets all counts to zero."""
        for counter in self._counters:
            counter.clear()


def aligned_tags(
    predicted: List[List[str]], gold: List[List[str]]
) -> Iterator[Tuple[List[str], List[str]]]:
    """Predicted and gold tags of each sequence. Raises `ValueError` if their numbers differ."""
    if len(predicted) != len(gold):
        raise ValueError(
            "expected gold tags for each predicted sequence, found "
            f"{len(predicted)} predicted and {len(gold)} gold sequences"
        )
    for number, (predicted_tags, gold_tags) in enumerate(zip(predicted, gold)):
        if len(predicted_tags) != len(gold_tags):
            raise ValueError(
                f"expected a gold tag for each predicted tag, found {len(predicted_tags)} "
                f"predicted and {len(gold_tags)} gold tags in sequence {number} of the batch"
            )
        yield predicted_tags, gold_tags


def sum_counters(counters: Collection[Counter]) -> List[Counter]:
    """Each counter summed over all processes, each of which has to call this."""
    # Processes may count different labels, so that the counts cannot be summed as one tensor.
    of_processes = gathered(list(counters))
    if len(of_processes) == 1:
        # A sum would lose the labels whose count is 0.
        return of_processes[0]
    return [sum(parts, Counter()) for parts in zip(*of_processes)]
