"""Confidence intervals of accuracies and F1."""

from typing import NamedTuple

import numpy
from numpy.typing import ArrayLike

__all__ = ["Interval", "bootstrap_interval", "percentile_interval"]

_NUM_SAMPLES = 1000
_LEVEL = 0.95


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


def bootstrap_interval(correct: ArrayLike, total: ArrayLike) -> Interval:
    """
    The 95 % percentile interval of `sum(correct) / sum(total)` over 1,000 bootstrap samples of
    sentences. Sentences are drawn, not words, because the words of a sentence are not independent.

    # Parameters

    correct, total : `ArrayLike`
        Shape `(num_sentences,)`. Counts of each sentence. For an accuracy: correct words, and all
        words. For F1: twice the true positives, and predicted plus gold items.
    """
    right, all_words = numpy.asarray(correct), numpy.asarray(total)
    generator = numpy.random.default_rng(0)
    means = numpy.empty(_NUM_SAMPLES)
    for number in range(_NUM_SAMPLES):
        drawn = generator.integers(len(right), size=len(right))
        # If most sentences have no words, a sample may have none.
        means[number] = right[drawn].sum() / max(all_words[drawn].sum(), 1)
    return percentile_interval(means)


def percentile_interval(samples: numpy.ndarray) -> Interval:
    """The 95 % percentile interval of a statistic, from its values in bootstrap samples."""
    low, high = numpy.quantile(samples, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Interval(float(low), float(high))
