"""The scores of a study over seeds, and differences between them, with confidence intervals."""

import math
import statistics
from dataclasses import dataclass
from functools import cached_property
from typing import Dict, List, Optional, Sequence

import numpy

from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Column, Row
from elmo_plugin.analysis.studies.train_run import Score
from elmo_plugin.util.bootstrap import Interval, percentile_interval

# Draws of the seeds' error per bootstrap sample: enough for precise quantiles.
_DRAWS_PER_SAMPLE = 100


class Cell:
    """The scores of a column, one per seed in their order, in the metric's own unit."""

    def __init__(self, column: Column, scores: List[Score]) -> None:
        found = [{**each["training"], **(each["evaluation"] or {})} for each in scores]
        #: The score of each seed.
        self.values: List[float] = [
            metrics[column.metric] for metrics in found if metrics.get(column.metric) is not None
        ]
        #: For each seed, the validation metric after each epoch.
        self.histories: List[list] = [each["history"] for each in scores]
        on_dev = f"best_validation_{column.metric.removeprefix('best_validation_')}"
        self._on_dev = [m for each in scores if (m := each["training"].get(on_dev)) is not None]
        self._samples = [(each["samples"] or {}).get(column.metric) for each in scores]

    @cached_property
    def mean(self) -> float:
        return statistics.mean(self.values)

    @property
    def deviation(self) -> Optional[float]:
        """The sample standard deviation; `None` for one seed or a score that is not finite."""
        # Training that diverged has infinite perplexity.
        is_known = len(self.values) > 1 and all(map(math.isfinite, self.values))
        return statistics.stdev(self.values) if is_known else None

    @property
    def on_dev(self) -> Optional[float]:
        """The mean of the best scores on dev; `None` if there are none."""
        return statistics.mean(self._on_dev) if self._on_dev else None

    @property
    def samples(self) -> Optional[numpy.ndarray]:
        """The mean of each bootstrap sample, repeated; `None` if a run has no samples."""
        if not all(self._samples):
            return None
        return numpy.tile(numpy.array(self._samples).mean(axis=0), _DRAWS_PER_SAMPLE)

    @cached_property
    def interval(self) -> Optional[Interval]:
        """The 95 % interval of the mean; `None` without samples or if a score is not finite."""
        return None if (samples := self.samples) is None else _interval(samples, [self.values])


@dataclass(frozen=True)
class Comparison:
    """
    The difference between a column and the one it is compared with: the column named in `against`,
    or else the row's baseline with the best mean score on dev.
    """

    #: In the metric's own unit, usually a fraction: 0.01 is one point in a table.
    mean: float
    #: At 95 %, as `difference` explains. `None` without bootstrap samples of the metric.
    interval: Optional[Interval]
    #: The difference divided by the other column's error, `1 - score`. `None` if the metric is not
    #: a fraction, or if lower is better.
    error_reduction: Optional[float]
    #: The number, from 0, of the column that is subtracted.
    base: int


def cell(results: Results, row: Row, number: int, fraction: float = 1) -> Optional[Cell]:
    """The scores of column `number` of a row; `None` while it has none."""
    column = row.columns[number]
    found = Cell(column, results.scores(row.name, column.name, fraction))
    return found if found.values else None


def cells(results: Results, row: Row, fraction: float) -> Dict[str, Cell]:
    """The cells of a row that have scores with this share of the training data, by column name."""
    found = ((c.name, cell(results, row, n, fraction)) for n, c in enumerate(row.columns))
    return {name: each for name, each in found if each is not None}


def difference(
    results: Results,
    row: Row,
    number: int,
    fraction: Optional[float] = None,
    base_fraction: Optional[float] = None,
) -> Optional[Comparison]:
    """
    Compares column `number`, from 0, as `Comparison` explains. `fraction` is its share of the
    training data, by default the row's largest. `base_fraction` is the other column's share, by
    default the same. Returns `None` while either column has no scores; raises `ValueError` if the
    row has no such share.

    The interval is the percentile interval of a paired bootstrap over the instances of the
    evaluated file, for the difference of the means over seeds. The error of these means is added to
    each sample: their standard error times a draw from Student's t distribution. The variance over
    seeds is pooled if both columns have the same number of seeds or one has a single seed.
    Otherwise each mean has its own variance, with Welch's degrees of freedom. With one seed per
    column, the interval covers only the variance over test data.
    """
    known = results.fractions(row.name)
    fraction = known[-1] if fraction is None else fraction
    base_fraction = fraction if base_fraction is None else base_fraction
    for given in (fraction, base_fraction):
        if given not in known:
            shares = ", ".join(map(str, known))
            raise ValueError(f"{row.name}: expected one of the shares {shares}, found {given}.")
    against = row.columns[number].against
    if against is None:
        base = baseline(results, row, base_fraction)
    else:
        base = [column.name for column in row.columns].index(against)
    before, after = cell(results, row, base, base_fraction), cell(results, row, number, fraction)
    if before is None or after is None:
        return None
    interval, samples = None, (before.samples, after.samples)
    if samples[0] is not None and samples[1] is not None:
        interval = _interval(samples[1] - samples[0], [before.values, after.values])
    is_share = row.percent and not row.lower_is_better and before.mean < 1
    reduction = (after.mean - before.mean) / (1 - before.mean) if is_share else None
    return Comparison(after.mean - before.mean, interval, reduction, base)


def baseline(results: Results, row: Row, fraction: float) -> int:
    """The number of the baseline that other columns are compared with."""
    return best_column(results, row, range(row.num_baselines), fraction)


def best_column(results: Results, row: Row, numbers: Sequence[int], fraction: float) -> int:
    """The one of `numbers` that is best on dev, else the first with any score, else the first."""
    found = cells(results, row, fraction)
    names = {number: row.columns[number].name for number in numbers}
    on_dev = {number: found[name].on_dev for number, name in names.items() if name in found}

    def rank(number: int) -> float:
        score = on_dev.get(number)
        if score is None or math.isnan(score):
            return float("-inf")
        return -score if row.lower_is_better else score

    return max(on_dev or numbers, key=rank)


def paper_error_reduction(row: Row, number: int) -> Optional[float]:
    """
    The error reduction in the paper, against the column `against` or the first baseline with a
    score; `None` without scores, or where a `Comparison` has none.
    """
    after, against = row.columns[number].paper, row.columns[number].against
    others = row.columns[: row.num_baselines] if against is None else row.columns
    base = [o.paper for o in others if o.paper is not None and against in (None, o.name)]
    is_share = row.percent and not row.lower_is_better
    if after is None or not base or not is_share or base[0] >= 100:
        return None
    return (after - base[0]) / (100 - base[0])


def _interval(samples: numpy.ndarray, values: Sequence[Sequence[float]]) -> Optional[Interval]:
    """The interval that `difference` explains; `None` if a number is not finite."""
    if not all(numpy.isfinite(part).all() for part in (samples, *map(numpy.asarray, values))):
        return None
    counts = [len(of_column) for of_column in values]
    squares = [float(numpy.var(of_column)) * len(of_column) for of_column in values]
    degrees = float(sum(counts) - len(counts))
    if not any(squares):
        return percentile_interval(samples)
    if min(counts) > 1 and len(set(counts)) > 1:
        # Welch's test: pooled variance is too small if the column with fewer seeds varies more.
        parts = [square / (count - 1) / count for square, count in zip(squares, counts)]
        variance = sum(parts)
        degrees = variance**2 / sum(part**2 / (n - 1) for part, n in zip(parts, counts))
    else:
        variance = sum(squares) / degrees * sum(1 / count for count in counts)
    draws = numpy.random.default_rng(0).standard_t(degrees, len(samples))
    return percentile_interval(samples + variance**0.5 * draws)
