"""
Scores of a clustering of mentions against another one, as counts that can be summed over documents.

The definitions are those of [Pradhan et al. (2014)](https://aclanthology.org/P14-2006/), which the
reference scorer of the CoNLL shared tasks follows from version 8 on. Mentions need not be the same
in both: one that only the prediction has counts against precision, one that only the gold clusters
have counts against recall.
"""

from collections import Counter
from typing import Dict, NamedTuple, Sequence, Tuple

import numpy
from scipy.optimize import linear_sum_assignment

Mention = Tuple[int, int]
Clusters = Sequence[Sequence[Mention]]
# How many mentions a predicted and a gold cluster share, by their numbers, where they share any.
Overlaps = Dict[Tuple[int, int], int]


class Counts(NamedTuple):
    """
    What precision and recall are quotients of.

    # Parameters

    right_predicted : `float`
        How much of the prediction is right, of `predicted`.
    predicted : `float`
    right_gold : `float`
        How much of the gold clusters was found, of `gold`.
    gold : `float`
    """

    right_predicted: float
    predicted: float
    right_gold: float
    gold: float


def overlaps(predicted: Clusters, gold: Clusters) -> Overlaps:
    """
    # Parameters

    predicted, gold : `Sequence[Sequence[Tuple[int, int]]]`
        No mention may be in two clusters of either.

    # Raises

    `ValueError`
        If one is.
    """
    predicted_clusters, gold_clusters = _owners(predicted, "predicted"), _owners(gold, "gold")
    return Counter(
        (cluster, gold_clusters[mention])
        for mention, cluster in predicted_clusters.items()
        if mention in gold_clusters
    )


def muc(predicted: Clusters, gold: Clusters, shared: Overlaps) -> Counts:
    """
    Counts the links that it takes to hold clusters together
    ([Vilain et al., 1995](https://aclanthology.org/M95-1005/)). A cluster of a single mention has
    none.
    """
    # What stays together needs one link less than it has mentions, seen from either side.
    right = sum(size - 1 for size in shared.values())
    return Counts(
        right,
        sum(len(cluster) - 1 for cluster in predicted),
        right,
        sum(len(cluster) - 1 for cluster in gold),
    )


def b_cubed(predicted: Clusters, gold: Clusters, shared: Overlaps) -> Counts:
    """
    Counts mentions, each by the share of its cluster that belongs there (Bagga and Baldwin, 1998).
    A mention that the other clustering lacks scores nothing, even alone in its cluster.
    """
    return Counts(
        sum(size * size / len(predicted[number]) for (number, _), size in shared.items()),
        sum(map(len, predicted)),
        sum(size * size / len(gold[number]) for (_, number), size in shared.items()),
        sum(map(len, gold)),
    )


def ceaf_entities(predicted: Clusters, gold: Clusters, shared: Overlaps) -> Counts:
    """
    Counts clusters under the best one-to-one mapping of predicted to gold ones
    ([Luo, 2005](https://aclanthology.org/H05-1004/)); the similarity of two is the F1 of their
    mentions (`phi_4`). A single mention weighs as much as a long chain.
    """
    similarity = _best_mapping(
        predicted,
        gold,
        {
            (first, second): 2 * size / (len(predicted[first]) + len(gold[second]))
            for (first, second), size in shared.items()
        },
    )
    return Counts(similarity, len(predicted), similarity, len(gold))


def ceaf_mentions(predicted: Clusters, gold: Clusters, shared: Overlaps) -> Counts:
    """As `ceaf_entities`, with the number of shared mentions for similarity (`phi_3`)."""
    similarity = _best_mapping(predicted, gold, shared)
    return Counts(similarity, sum(map(len, predicted)), similarity, sum(map(len, gold)))


def _best_mapping(
    predicted: Clusters, gold: Clusters, similarities: Dict[Tuple[int, int], float]
) -> float:
    matrix = numpy.zeros((len(predicted), len(gold)))
    for pair, similarity in similarities.items():
        matrix[pair] = similarity
    return float(matrix[linear_sum_assignment(matrix, maximize=True)].sum())


def _owners(clusters: Clusters, kind: str) -> Dict[Mention, int]:
    owners: Dict[Mention, int] = {}
    for number, cluster in enumerate(clusters):
        for mention in cluster:
            if mention in owners:
                raise ValueError(
                    f"Expected every mention in one {kind} cluster, once; found {mention} in "
                    f"cluster {owners[mention]} and again in cluster {number}."
                )
            owners[mention] = number
    return owners
