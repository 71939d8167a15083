"""
Coreference metrics of one document as counts, which can be summed over documents.

The definitions are those of [Pradhan et al. (2014)](https://aclanthology.org/P14-2006/), as in the
reference scorer of the CoNLL shared tasks from version 8 on. Predicted and gold mentions may
differ: spurious mentions lower precision, missing ones recall. A mention in two gold clusters
counts in both, as in that scorer.
"""

from collections import Counter
from typing import Dict, NamedTuple, Sequence, Tuple

import numpy
from scipy.optimize import linear_sum_assignment

Mention = Tuple[int, int]
Clusters = Sequence[Sequence[Mention]]
# The number of shared mentions by the indices of a predicted and a gold cluster.
Pairs = Dict[Tuple[int, int], int]


class Counts(NamedTuple):
    """
    Numerators and denominators of precision and recall, in the order of the parameters of
    `precision_recall_f1`.
    """

    precision_numerator: float
    precision_denominator: float
    recall_numerator: float
    recall_denominator: float


class Overlaps(NamedTuple):
    """Overlaps of predicted and gold clusters."""

    #: The number of mentions that a predicted and a gold cluster share.
    shared: Pairs
    #: The same, but a mention in several gold clusters counts for the last of them only. For MUC
    #: and B³, the reference scorer assigns predicted mentions to gold clusters in this way.
    matched: Pairs


def overlaps(predicted: Clusters, gold: Clusters) -> Overlaps:
    """
    # Parameters

    predicted, gold : `Sequence[Sequence[Tuple[int, int]]]`
        A mention is in one predicted cluster at most, and at most once in a gold cluster.
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
    return Overlaps(shared, matched)


def muc(predicted: Clusters, gold: Clusters, overlap: Overlaps) -> Counts:
    """
    Counts links: a cluster of n mentions has n - 1
    ([Vilain et al., 1995](https://aclanthology.org/M95-1005/)).
    """
    # n mentions that share a predicted and a gold cluster have n - 1 correct links.
    num_correct = sum(size - 1 for size in overlap.matched.values())
    return Counts(
        num_correct,
        sum(len(cluster) - 1 for cluster in predicted),
        num_correct,
        sum(len(cluster) - 1 for cluster in gold),
    )


def b_cubed(predicted: Clusters, gold: Clusters, overlap: Overlaps) -> Counts:
    """
    Averages over mentions the share of a mention's cluster that is correct (Bagga and Baldwin,
    1998). A mention that is missing in the other clustering scores 0, even as a singleton.
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
    Similarity of clusters under the best one-to-one mapping of predicted to gold clusters
    ([Luo, 2005](https://aclanthology.org/H05-1004/)); the similarity of two clusters is the F1 of
    their mentions (`phi_4`). Every cluster has the same weight, whatever its size.
    """
    matrix = numpy.zeros((len(predicted), len(gold)))
    for (first, second), size in overlap.shared.items():
        matrix[first, second] = 2 * size / (len(predicted[first]) + len(gold[second]))
    similarity = float(matrix[linear_sum_assignment(matrix, maximize=True)].sum())
    return Counts(similarity, len(predicted), similarity, len(gold))
