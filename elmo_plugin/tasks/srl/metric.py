from typing import Dict, List, Tuple

from overrides import overrides

from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.tasks.metrics import SpanF1

Span = Tuple[int, int]
Argument = Tuple[str, Tuple[Span, ...]]


def arguments(tags: List[str]) -> List[Argument]:
    """
    The label and spans of each argument of a predicate. In a discontinuous argument, `C-X`
    continues the nearest `X` on its left. Without one it is an `X` itself, which a later `C-X` may
    continue. `R-X` is a label like any other. An `I-X` that does not follow an `X` starts a new
    span.
    """
    found: List[Tuple[str, List[Span]]] = []
    latest: Dict[str, List[Span]] = {}
    for tagged in tags_to_spans(tags):
        label, span = tagged.label, (tagged.start, tagged.end)
        continues = label.startswith("C-")
        label = label.removeprefix("C-")
        if continues and label in latest:
            latest[label].append(span)
        else:
            latest[label] = [span]
            found.append((label, latest[label]))
    return [(label, tuple(spans)) for label, spans in found]


class SrlSpanF1(SpanF1):
    """
    Counts arguments like [CoNLL-2005's](https://www.cs.upc.edu/~srlconll/soft.html) `srl-eval.pl`.
    An argument is correct if its label and all of its spans are. A partly found discontinuous
    argument counts as one excess and one missed argument; so does a correct span with a wrong
    label. The verb (`V` and its continuations) is given: it has its own scores and is not in the
    overall ones. AllenNLP's `SpanBasedF1Measure` counts every continuation as an argument.
    """

    separate = ("V",)
    columns = {
        "corr.": lambda row: row.true_positives,
        "excess": lambda row: row.predicted - row.true_positives,
        "missed": lambda row: row.gold - row.true_positives,
    }

    @overrides(check_signature=False)
    def __call__(self, predicted: List[List[str]], gold: List[List[str]]) -> None:
        for predicted_tags, gold_tags in zip(predicted, gold, strict=True):
            self.add(arguments(predicted_tags), arguments(gold_tags))
