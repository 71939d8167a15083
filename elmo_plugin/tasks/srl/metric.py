"""Precision, recall and F1 of predicted arguments, by the rules of CoNLL-2005's `srl-eval.pl`."""

from collections import Counter
from typing import Dict, List, Optional, Tuple

import torch.distributed as dist
from allennlp.common.util import is_distributed
from allennlp.training.metrics import Metric
from overrides import overrides

Span = Tuple[int, int]
Argument = Tuple[str, Tuple[Span, ...]]

OVERALL = "overall"
VERB = "V"


def bio_spans(tags: List[str]) -> List[Tuple[str, Span]]:
    """
    # Parameters

    tags : `List[str]`
        One BIO tag per token. An `I-X` that continues no `X` opens a span of its own.

    # Returns

    `List[Tuple[str, Span]]`
        Label with first and last token of each span, from left to right.
    """
    spans: List[Tuple[str, Span]] = []
    previous = ""
    for token, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix == "I" and label == previous:
            first = spans[-1][1][0]
            spans[-1] = (label, (first, token))
        elif label:
            spans.append((label, (token, token)))
        previous = label
    return spans


def arguments(tags: List[str]) -> List[Argument]:
    """
    The arguments of one predicate, continuations joined to what they continue.

    A `C-X` belongs to the nearest `X` on its left. Without one it is an `X` itself, which later
    ones may continue. `R-X` is a label like any other.

    # Parameters

    tags : `List[str]`
        One BIO tag per token.

    # Returns

    `List[Argument]`
        Label and spans of each argument; more than one span if it is discontinuous.
    """
    found: List[Tuple[str, List[Span]]] = []
    latest: Dict[str, List[Span]] = {}
    for label, span in bio_spans(tags):
        continues = label.startswith("C-")
        label = label[len("C-") :] if continues else label
        if continues and label in latest:
            latest[label].append(span)
        else:
            latest[label] = [span]
            found.append((label, latest[label]))
    return [(label, tuple(spans)) for label, spans in found]


def _scores(correct: int, excess: int, missed: int) -> Tuple[float, float, float]:
    precision = correct / (correct + excess) if correct + excess else 0.0
    recall = correct / (correct + missed) if correct + missed else 0.0
    f1 = 2 * precision * recall / (precision + recall) if correct else 0.0
    return precision, recall, f1


@Metric.register("elmo-srl-f1")
class SrlSpanF1(Metric):
    """
    Counts arguments as the official scorer of the
    [CoNLL-2005 shared task](https://www.cs.upc.edu/~srlconll/soft.html), `srl-eval.pl`, does.

    An argument is correct if label and spans agree, all of them: a discontinuous argument found in
    part is one excess and one missed argument, as is a right span with a wrong label. The verb
    (`V`, with its continuations) has a score of its own but no part in the overall one, since it is
    given. AllenNLP's `SpanBasedF1Measure` differs: it counts every continuation as an argument.
    """

    def __init__(self) -> None:
        self._correct: Counter = Counter()
        self._excess: Counter = Counter()
        self._missed: Counter = Counter()

    @overrides(check_signature=False)
    def __call__(self, predicted: List[List[str]], gold: List[List[str]]) -> None:
        """
        # Parameters

        predicted : `List[List[str]]`
            A sequence of BIO tags per predicate.
        gold : `List[List[str]]`
            The right tags of the same predicates.

        # Raises

        `ValueError`
            If the two do not hold the same number of predicates, or of tags for one of them.
        """
        if len(predicted) != len(gold):
            raise ValueError(
                f"SrlSpanF1 needs the gold tags of each predicate: {len(predicted)} predicates "
                f"were predicted, {len(gold)} are gold."
            )
        for number, (predicted_tags, gold_tags) in enumerate(zip(predicted, gold)):
            if len(predicted_tags) != len(gold_tags):
                raise ValueError(
                    f"SrlSpanF1 compares tags token by token: predicate {number} of the batch has "
                    f"{len(predicted_tags)} predicted and {len(gold_tags)} gold tags."
                )
            found, wanted = set(arguments(predicted_tags)), set(arguments(gold_tags))
            self._correct.update(label for label, _ in found & wanted)
            self._excess.update(label for label, _ in found - wanted)
            self._missed.update(label for label, _ in wanted - found)

    def _counts(self) -> Dict[str, Tuple[int, int, int]]:
        """Correct, excess and missed arguments: overall first, the verb last, of all processes."""
        kinds = [self._correct, self._excess, self._missed]
        if is_distributed():
            # Processes meet different labels, so that the counts cannot be summed as one tensor.
            gathered: List[Optional[List[Counter]]] = [None] * dist.get_world_size()
            dist.all_gather_object(gathered, kinds)
            kinds = [sum(parts, Counter()) for parts in zip(*gathered)]
        labels = sorted(set().union(*kinds), key=lambda label: (label == VERB, label))
        counts = {label: tuple(kind[label] for kind in kinds) for label in labels}
        rows = [row for label, row in counts.items() if label != VERB]
        overall = tuple(sum(column) for column in zip((0, 0, 0), *rows))
        return {OVERALL: overall, **counts}

    @overrides
    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `precision-overall`, `recall-overall` and `f1-measure-overall`, and the same three for
            every label seen so far, `f1-measure-ARG0` for instance; fractions, not percentages.
            Over all processes when there are several.
        """
        metrics = {}
        for label, counts in self._counts().items():
            precision, recall, f1 = _scores(*counts)
            metrics[f"precision-{label}"] = precision
            metrics[f"recall-{label}"] = recall
            metrics[f"f1-measure-{label}"] = f1
        if reset:
            self.reset()
        return metrics

    def table(self) -> str:
        """
        # Returns

        `str`
            The counts and percentages of `srl-eval.pl`, laid out as there: a row for all
            arguments, one for each label, and the verb last. Over all processes when there are
            several, all of which have to ask for it.
        """
        counts = self._counts()
        width = max(10, *map(len, counts))
        head = ("corr.", "excess", "missed", "prec.", "rec.", "F1")
        lines = [" " * width + " " + "".join(f"{name:>8}" for name in head)]
        for label, row in counts.items():
            percentages = "".join(f"{100 * score:8.2f}" for score in _scores(*row))
            name = label.capitalize() if label == OVERALL else label
            lines.append(f"{name:>{width}} " + "".join(f"{n:8d}" for n in row) + percentages)
        return "\n".join(lines)

    @overrides
    def reset(self) -> None:
        for kind in (self._correct, self._excess, self._missed):
            kind.clear()
