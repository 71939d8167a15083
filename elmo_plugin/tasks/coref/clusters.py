"""
Scores of a clustering of mentions against another one, as counts that can be summed over documents.

The definitions are those of [Pradhan et al. (2014)](https://aclanthology.org/P14-2006/), which the
reference scorer of the CoNLL shared tasks follows from version 8 on. Mentions need not be the same
in both: one that only the prediction has counts against precision, one that only the gold clusters
have counts against recall. A mention in two gold clusters counts in both, as in that scorer.
"""

from collections import Counter
from typing import Dict, NamedTuple, Sequence, Tuple

import numpy
from scipy.optimize import linear_sum_assignment

Mention = Tuple[int, int]
Clusters = Sequence[Sequence[Mention]]
# Numbers of mentions, by the numbers of a predicted and a gold cluster that share any.
Pairs = Dict[Tuple[int, int], int]


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


class Overlaps(NamedTuple):
    """
    How much predicted and gold clusters have in common.

    # Parameters

    shared : `Dict[Tuple[int, int], int]`
        How many mentions two clusters share.
    matched : `Dict[Tuple[int, int], int]`
        The same, but of a mention in several gold clusters, the last one alone has it. The
        reference scorer looks clusters up by mention so where it walks through the predicted
        mentions, for MUC and B³.
    """

    shared: Pairs
    matched: Pairs


def overlaps(predicted: Clusters, gold: Clusters) -> Overlaps:
    """
    # Parameters

    predicted, gold : `Sequence[Sequence[Tuple[int, int]]]`
        No mention may be in two predicted clusters, nor twice in one gold cluster.

    # Raises

    `ValueError`
        If one is.
    """
    owners: Dict[Mention, int] = {}
    for number, cluster in enumerate(predicted):
        for mention in cluster:
            if mention in owners:
                raise ValueError(
                    f"Expected every mention in one predicted cluster, once; found {mention} in "
                    f"cluster {owners[mention]} and again in cluster {number}."
                )
            owners[mention] = number
    shared: Counter = Counter()
    last: Dict[Mention, int] = {}
    for number, cluster in enumerate(gold):
        if len(set(cluster)) < len(cluster):
            raise ValueError(f"Expected every mention once in gold cluster {number}: {cluster}.")
        for mention in cluster:
            if mention in owners:
                shared[owners[mention], number] += 1
                last[mention] = number
    matched = Counter(
        (number, last[mention]) for mention, number in owners.items() if mention in last
    )
    return Overlaps(shared, matched)


def muc(predicted: Clusters, gold: Clusters, overlap: Overlaps) -> Counts:
    """
    Counts the links that it takes to hold clusters together
    ([Vilain et al., 1995](https://aclanthology.org/M95-1005/)). A cluster of a single mention has
    none.
    """
    # What stays together needs one link less than it has mentions, seen from either side.
    right = sum(size - 1 for size in overlap.matched.values())
    return Counts(
        right,
        sum(len(cluster) - 1 for cluster in predicted),
        right,
        sum(len(cluster) - 1 for cluster in gold),
    )


def b_cubed(predicted: Clusters, gold: Clusters, overlap: Overlaps) -> Counts:
    """
    Counts mentions, each by the share of its cluster that belongs there (Bagga and Baldwin, 1998).
    A mention that the other clustering lacks scores nothing, even alone in its cluster.
    """
    shared, matched = overlap
    return Counts(
        sum(size * shared[pair] / len(predicted[pair[0]]) for pair, size in matched.items()),
        sum(map(len, predicted)),
        sum(size * shared[pair] / len(gold[pair[1]]) for pair, size in matched.items()),
        sum(map(len, gold)),
    )


def ceaf_entities(predicted: Clusters, gold: Clusters, overlap: Overlaps) -> Counts:
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
            for (first, second), size in overlap.shared.items()
        },
    )
    return Counts(similarity, len(predicted), similarity, len(gold))


def ceaf_mentions(predicted: Clusters, gold: Clusters, overlap: Overlaps) -> Counts:
    """As `ceaf_entities`, with the number of shared mentions for similarity (`phi_3`)."""
    similarity = _best_mapping(predicted, gold, overlap.shared)
    return Counts(similarity, sum(map(len, predicted)), similarity, sum(map(len, gold)))


def _best_mapping(
    predicted: Clusters, gold: Clusters, similarities: Dict[Tuple[int, int], float]
) -> float:
    matrix = numpy.zeros((len(predicted), len(gold)))
    for pair, similarity in similarities.items():
        matrix[pair] = similarity
    return float(matrix[linear_sum_assignment(matrix, maximize=True)].sum())
