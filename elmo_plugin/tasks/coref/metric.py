"""
Coreference metrics, computed as in version 8.01 of the CoNLL [reference
scorer](https://github.com/conll/reference-coreference-scorers), by the definitions of [Pradhan et
al. (2014)](https://aclanthology.org/P14-2006/).
"""

from collections import Counter
from typing import Collection, Dict, Sequence, Tuple

import numpy
from overrides import overrides
from scipy.optimize import linear_sum_assignment

from elmo_plugin.tasks.metrics import SummedMetric, precision_recall_f1, quotient

Mention = Tuple[int, int]
Clusters = Sequence[Sequence[Mention]]
# Numerator and denominator of precision, then of recall, see `precision_recall_f1`.
Counts = Tuple[float, float, float, float]


# Numbers of mentions that two clusters share, by the indices of predicted and gold cluster.
Overlaps = Dict[Tuple[int, int], int]


def overlaps(predicted: Clusters, gold: Clusters) -> Tuple[Overlaps, Overlaps]:
    """
    The mentions that clusters share, and the ones that are matched: there, a mention in several
    gold clusters counts for the last of them only. For MUC and B³, the reference scorer assigns
    predicted mentions to gold clusters in this way.
    """
    owners = {mention: number for number, cluster in enumerate(predicted) for mention in cluster}
    shared: Counter = Counter()
    last: Dict[Mention, int] = {}
    for number, cluster in enumerate(gold):
        for mention in cluster:
            if mention in owners:
                shared[owners[mention], number] += 1
                last[mention] = number
    matched = Counter(
        (number, last[mention]) for mention, number in owners.items() if mention in last
    )
    return shared, matched


def muc(predicted: Clusters, gold: Clusters, shared: Overlaps, matched: Overlaps) -> Counts:
    """
    Counts links: a cluster of n mentions has n - 1
    ([Vilain et al., 1995](https://aclanthology.org/M95-1005/)).
    """
    # n mentions that share a predicted and a gold cluster have n - 1 correct links.
    num_correct = sum(size - 1 for size in matched.values())
    num_predicted, num_gold = (
        sum(len(cluster) - 1 for cluster in side) for side in (predicted, gold)
    )
    return num_correct, num_predicted, num_correct, num_gold


def b_cubed(predicted: Clusters, gold: Clusters, shared: Overlaps, matched: Overlaps) -> Counts:
    """
    Averages over mentions the correct share of a mention's cluster (Bagga and Baldwin, 1998). A
    mention that is missing in the other clustering scores 0, even as a singleton.
    """
    return (
        sum(size * shared[pair] / len(predicted[pair[0]]) for pair, size in matched.items()),
        sum(map(len, predicted)),
        sum(size * shared[pair] / len(gold[pair[1]]) for pair, size in matched.items()),
        sum(map(len, gold)),
    )


def ceaf_entities(
    predicted: Clusters, gold: Clusters, shared: Overlaps, matched: Overlaps
) -> Counts:
    """
    Similarity of clusters, the F1 of their mentions (`phi_4`), under the best one-to-one mapping
    ([Luo, 2005](https://aclanthology.org/H05-1004/)). Small and large clusters weigh the same.
    """
    matrix = numpy.zeros((len(predicted), len(gold)))
    for (first, second), size in shared.items():
        matrix[first, second] = 2 * size / (len(predicted[first]) + len(gold[second]))
    similarity = float(matrix[linear_sum_assignment(matrix, maximize=True)].sum())
    return similarity, len(predicted), similarity, len(gold)


# The official score of the shared task is the mean of these.
_MEASURES = {"muc": muc, "b3": b_cubed, "ceafe": ceaf_entities}
_KINDS = ("precision", "recall", "f1")


class CorefScores(SummedMetric):
    """
    Scores clusters of mentions, from counts summed over documents. A mention is correct if both of
    its boundaries are. Singleton clusters count in all measures but MUC. A mention in two gold
    clusters counts in both, or in the last one if the measure needs a single cluster.
    """

    @overrides(check_signature=False)
    def __call__(
        self,
        predicted: Sequence[Clusters],
        gold: Sequence[Clusters],
        spans: Sequence[Collection[Mention]],
    ) -> None:
        """
        Takes the clusters of each document, and the spans that pruning kept. A mention is in one
        predicted cluster at most, and at most once in a gold cluster.
        """
        for of_predicted, of_gold, kept in zip(predicted, gold, spans):
            overlap = overlaps(of_predicted, of_gold)
            for name, measure in _MEASURES.items():
                for number, count in enumerate(measure(of_predicted, of_gold, *overlap)):
                    self._sums[name, number] += count
            mentions = {mention for cluster in of_gold for mention in cluster}
            self._sums["documents", ""] += 1
            self._sums["mentions", "right"] += len(mentions.intersection(kept))
            self._sums["mentions", "gold"] += len(mentions)

    @overrides
    def scores(self, sums: Counter) -> Dict[str, float]:
        """
        `coref_precision`, `coref_recall` and `coref_f1`, the means over MUC, B³ and CEAFe; these
        also by measure, such as `muc_f1`; `mention_recall`. Fractions. Empty without documents.
        """
        if not sums["documents", ""]:
            return {}
        scores = {
            name: precision_recall_f1(*(sums[name, number] for number in range(4)))
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
