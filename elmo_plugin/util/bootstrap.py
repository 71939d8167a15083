"""Confidence intervals of accuracies and F1, and of differences between them."""

from dataclasses import dataclass, field
from typing import Iterator, List, NamedTuple

import numpy
from numpy.typing import ArrayLike

_LEVEL = 0.95


class Interval(NamedTuple):
    """The bounds of a 95 % confidence interval, in the score's unit."""

    low: float
    high: float


class Difference(NamedTuple):
    """The difference between two scores with its 95 % confidence interval, in their unit."""

    value: float
    interval: Interval

    def in_percent(self, num_decimals: int) -> str:
        """Formats it as `-0.36 (-0.61 to -0.12)`."""
        numbers = (self.value, *self.interval)
        value, low, high = (f"{100 * number:+.{num_decimals}f}" for number in numbers)
        return f"{value} ({low} to {high})"


@dataclass(frozen=True)
class BootstrappedScore:
    """A share of all items, and the same share of each bootstrap sample."""

    value: float
    #: Shape `(num_samples,)`. Left out of `==`, which compares arrays element by element.
    samples: numpy.ndarray = field(compare=False)

    def interval(self) -> Interval:
        """The 95 % percentile interval."""
        return percentile_interval(self.samples)

    def rounded_samples(self) -> List[float]:
        """The samples rounded to six decimals, for a file."""
        return numpy.round(self.samples, 6).tolist()

    def minus(self, other: "BootstrappedScore") -> Difference:
        """The difference from another score of the same sentences, with a paired bootstrap."""
        interval = percentile_interval(self.samples - other.samples)
        return Difference(self.value - other.value, interval)


def bootstrap(correct: ArrayLike, total: ArrayLike) -> BootstrappedScore:
    """
    Returns `sum(correct) / sum(total)`, also for 1,000 bootstrap samples of sentences. Words are
    not drawn, because the words of a sentence are not independent.

    `correct` and `total` are counts per sentence. For accuracy: correct words, and all words. For
    F1: twice the true positives, and predicted plus gold items.
    """
    # Shape: (num_sentences, 2)
    counts = numpy.stack([correct, total], axis=1)
    # If most sentences have no words, a sample may have none.
    value, *samples = (
        right / max(of_all, 1) for right, of_all in (counts.sum(axis=0), *sums_of_samples(counts))
    )
    return BootstrappedScore(float(value), numpy.array(samples))


def sums_of_samples(
    counts: numpy.ndarray, num_samples: int = 1000, seed: int = 0
) -> Iterator[numpy.ndarray]:
    """
    Yields the sums of `counts`, shape `(num_instances, num_counts)`, over each bootstrap sample.
    Equal seeds and numbers of instances give equal samples, so that two models can be paired.
    """
    generator = numpy.random.default_rng(seed)
    for _ in range(num_samples):
        drawn = generator.integers(len(counts), size=len(counts))
        yield numpy.bincount(drawn, minlength=len(counts)) @ counts


def percentile_interval(samples: numpy.ndarray) -> Interval:
    """The 95 % percentile interval of bootstrap samples, shape `(num_samples,)`."""
    low, high = numpy.quantile(samples, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return Interval(float(low), float(high))
