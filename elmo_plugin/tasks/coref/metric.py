from collections import Counter
from typing import Collection, Dict, Sequence, Tuple

from overrides import overrides

from elmo_plugin.metrics.f1 import precision_recall_f1, quotient
from elmo_plugin.metrics.summed_metric import SummedMetric
from elmo_plugin.tasks.coref.measures import (
    Clusters,
    Counts,
    b_cubed,
    ceaf_entities,
    muc,
    overlaps,
)

# The official score of the shared task is the mean of these.
_MEASURES = {"muc": muc, "b3": b_cubed, "ceafe": ceaf_entities}
_KINDS = ("precision", "recall", "f1")


class CorefScores(SummedMetric):
    """
    Scores clusters of mentions as version 8.01 of the
    [reference scorer](https://github.com/conll/reference-coreference-scorers) does: a mention is
    correct if both of its boundaries are, and counts are summed over documents before precision and
    recall are computed. Singleton clusters count in all measures but MUC. A mention in two gold
    clusters counts in both, or in the last one if the measure needs a single cluster. Quotients
    with a zero denominator are 0.
    """

    @overrides(check_signature=False)
    def __call__(
        self,
        predicted: Sequence[Clusters],
        gold: Sequence[Clusters],
        spans: Sequence[Collection[Tuple[int, int]]],
    ) -> None:
        """
        # Parameters

        predicted, gold : `Sequence[List[List[Tuple[int, int]]]]`
            The clusters of each document, each a list of mentions `(first token, last token)`. A
            mention is in one predicted cluster at most, and at most once in a gold cluster.
        spans : `Sequence[Collection[Tuple[int, int]]]`
            The spans of each document that pruning kept, for `mention_recall`.
        """
        for document in zip(predicted, gold, spans):
            self._count(*document)

    def _count(
        self, predicted: Clusters, gold: Clusters, spans: Collection[Tuple[int, int]]
    ) -> None:
        shared = overlaps(predicted, gold)
        for name, measure in _MEASURES.items():
            counts = measure(predicted, gold, shared)
            self._sums.update({(name, field): n for field, n in counts._asdict().items()})
        self._sums["documents", ""] += 1
        mentions = {mention for cluster in gold for mention in cluster}
        self._sums["mentions", "right"] += len(mentions.intersection(spans))
        self._sums["mentions", "gold"] += len(mentions)

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """
        # Returns

        `Dict[str, float]`
            `coref_precision`, `coref_recall` and `coref_f1`, each the mean over MUC, B³ and CEAFe;
            the same three for each of `muc`, `b3` and `ceafe`, for example `muc_f1`; and
            `mention_recall`. Fractions, computed from the counts of all processes. Empty if there
            were no documents.
        """
        if not sums["documents", ""]:
            return {}
        scores = {
            name: precision_recall_f1(*(sums[name, field] for field in Counts._fields))
            for name in _MEASURES
        }
        means = [sum(values) / len(scores) for values in zip(*scores.values())]
        metrics = {
            f"{name}_{kind}": score
            for name, of_measure in {"coref": means, **scores}.items()
            for kind, score in zip(_KINDS, of_measure)
        }
        metrics["mention_recall"] = quotient(sums["mentions", "right"], sums["mentions", "gold"])
        return metrics
