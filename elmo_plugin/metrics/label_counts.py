from collections import Counter
from typing import Any, Callable, Collection, Dict, Iterable, List, Optional, Tuple

import torch.distributed as dist
from allennlp.common.util import is_distributed

OVERALL = "overall"
# How many were found and right, found, and there to be found.
Row = Tuple[int, int, int]


class LabelCounts:
    """
    Counts what was found of what there was to be found, per label: the part that metrics of spans
    share, whatever their rules of what a span is.

    # Parameters

    apart : `Collection[str]`, optional (default = `()`)
        Labels that have scores but no part in the overall ones, and come last.
    """

    def __init__(self, apart: Collection[str] = ()) -> None:
        self._apart = apart
        self._kinds: Tuple[Counter, Counter, Counter] = (Counter(), Counter(), Counter())

    def add(self, found: Iterable[Tuple[str, Any]], gold: Iterable[Tuple[str, Any]]) -> None:
        """
        # Parameters

        found, gold : `Iterable[Tuple[str, Any]]`
            Label and place of each thing of a sentence; one is right if both agree with a gold one.
        """
        found, gold = set(found), set(gold)
        for kind, things in zip(self._kinds, (found & gold, found, gold)):
            kind.update(label for label, _ in things)

    def rows(self) -> Dict[str, Row]:
        """The counts by label, overall first. Of all processes, all of which have to ask."""
        kinds = over_processes(self._kinds)
        labels = sorted(set().union(*kinds), key=lambda label: (label in self._apart, label))
        rows = {label: tuple(kind[label] for kind in kinds) for label in labels}
        counted = [row for label, row in rows.items() if label not in self._apart]
        return {OVERALL: tuple(map(sum, zip((0, 0, 0), *counted))), **rows}

    def scores(self) -> Dict[str, float]:
        """`precision-<label>`, `recall-<label>` and `f1-measure-<label>`, as fractions."""
        scores = {}
        for label, row in self.rows().items():
            for name, score in zip(("precision", "recall", "f1-measure"), _scores(*row)):
                scores[f"{name}-{label}"] = score
        return scores

    def table(self, columns: Dict[str, Callable[[int, int, int], int]]) -> List[str]:
        """
        # Parameters

        columns : `Dict[str, Callable[[int, int, int], int]]`
            The head of each column of counts, and how it follows from a row of them.

        # Returns

        `List[str]`
            The lines: heads, overall, labels; the percentages stand on the right.
        """
        rows = self.rows()
        width = max(10, *map(len, rows))
        heads = (*columns, "prec.", "rec.", "F1")
        lines = [" " * width + " " + "".join(f"{head:>8}" for head in heads)]
        for label, row in rows.items():
            name = label.capitalize() if label == OVERALL else label
            counts = "".join(f"{column(*row):8d}" for column in columns.values())
            percentages = "".join(f"{100 * score:8.2f}" for score in _scores(*row))
            lines.append(f"{name:>{width}} {counts}{percentages}")
        return lines

    def reset(self) -> None:
        for kind in self._kinds:
            kind.clear()


def over_processes(counters: Collection[Counter]) -> List[Counter]:
    """The counters, each summed over all processes when there are several; all have to ask."""
    if not is_distributed():
        return list(counters)
    # Processes meet different labels, so that the counts cannot be summed as one tensor.
    gathered: List[Optional[List[Counter]]] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, list(counters))
    return [sum(parts, Counter()) for parts in zip(*gathered)]


def _scores(correct: int, found: int, gold: int) -> Tuple[float, float, float]:
    precision = correct / found if found else 0.0
    recall = correct / gold if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return precision, recall, f1
