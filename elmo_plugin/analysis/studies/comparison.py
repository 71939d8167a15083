"""The scores of a study over seeds, and differences between them, with confidence intervals."""

import math
import statistics
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Dict, List, Optional, Sequence

import numpy

from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Column, Row
from elmo_plugin.analysis.studies.train_run import SAMPLES, Score
from elmo_plugin.util.bootstrap import Interval, percentile_interval

# Draws of the seeds' error per bootstrap sample: enough for precise quantiles.
_DRAWS_PER_SAMPLE = 100


class Cell:
    """The scores of a column, one per seed in their order, in the metric's own unit."""

    def __init__(self, column: Column, scores: List[Score]) -> None:
        #: The score of each seed, at least one.
        self.values = _values(column, scores)
        #: For each seed for which it is known, the validation metric after each epoch.
        self.histories: List[List[float]] = [
            [value if math.isfinite(value) else -math.inf for value in each["history"]]
            for each in scores
            if each["history"] and None not in each["history"]
        ]
        self.mean = statistics.mean(self.values)
        #: The sample standard deviation; `None` for one seed or a score that is not finite.
        self.deviation: Optional[float] = None
        # Training that diverged has infinite perplexity.
        if len(self.values) > 1 and all(map(math.isfinite, self.values)):
            self.deviation = statistics.stdev(self.values)
        name = f"best_validation_{column.metric.removeprefix('best_validation_')}"
        on_dev = [m for each in scores if (m := each["training"].get(name)) is not None]
        #: The mean of the best scores on dev; `None` if there are none.
        self.on_dev = statistics.mean(on_dev) if on_dev else None
        #: The mean of each bootstrap sample, for each kind of `SAMPLES` that all runs have.
        self.samples: Dict[str, numpy.ndarray] = {}
        for kind in SAMPLES:
            found = [(each.get(kind) or {}).get(column.metric) for each in scores]
            if all(found):
                self.samples[kind] = numpy.array(found).mean(axis=0)

    @cached_property
    def interval(self) -> Optional[Interval]:
        """The 95 % interval of the mean; `None` without samples or if a score is not finite."""
        return None if (samples := _with_seeds(self)) is None else percentile_interval(samples)


@dataclass(frozen=True)
class Comparison:
    """
    The difference between a column and the one it is compared with: the column named in `against`,
    or else the row's baseline with the best mean score on dev.
    """

    #: In the metric's own unit, usually a fraction: 0.01 is one point in a table.
    mean: float
    #: At 95 %, as `Share.difference` explains. `None` without bootstrap samples of the metric.
    interval: Optional[Interval]
    #: Two-sided, of the same samples: below 0.05 if the interval excludes zero. `None` without it.
    p_value: Optional[float]
    #: The difference divided by the other column's error, `1 - score`. `None` if the metric is not
    #: a fraction, or if lower is better.
    error_reduction: Optional[float]
    #: The name of the column that is subtracted.
    base: str


@dataclass(frozen=True)
class Share:
    """The scores of a row with one share of the training data."""

    #: Without the paper's scores, which are for all data, if this is a part of several shares.
    row: Row
    fraction: float
    #: The row's name, and the share if the row has several.
    name: str
    #: By the name of the column. Columns without scores are left out.
    cells: Dict[str, Cell]

    def best(self, columns: Sequence[Column]) -> str:
        """Names the column that is best on dev, else the first with any score, else the first."""

        def rank(name: str) -> float:
            score = self.cells[name].on_dev
            if score is None or math.isnan(score):
                return float("-inf")
            return -score if self.row.lower_is_better else score

        scored = [column.name for column in columns if column.name in self.cells]
        return max(scored, key=rank) if scored else columns[0].name

    @property
    def baseline(self) -> str:
        """The name of the baseline that other columns are compared with."""
        return self.best(self.row.columns[: self.row.num_baselines])

    def difference(self, column: Column, base: "Share") -> Optional[Comparison]:
        """
        Compares a column with one of the share `base`. Returns `None` if either has no scores.

        The interval is the percentile interval of a paired bootstrap over the evaluated file, for
        the difference of the means over seeds: over groups of instances that depend on each other
        if all runs have such samples, else over instances. The error of these means is
        added to each sample: their standard error times a draw from Student's t distribution, by
        Welch's test: each mean has its own variance. A column with a single seed borrows the other
        column's. With one seed per column, the interval covers only the variance over test data.
        """
        name = column.against or base.baseline
        before, after = base.cells.get(name), self.cells.get(column.name)
        if before is None or after is None:
            return None
        interval = p_value = None
        if (samples := _with_seeds(after, before)) is not None:
            interval = percentile_interval(samples)
            p_value = min(1.0, 2 * float(min(numpy.mean(samples <= 0), numpy.mean(samples >= 0))))
        has_error = self.row.percent and not self.row.lower_is_better and before.mean < 1
        reduction = (after.mean - before.mean) / (1 - before.mean) if has_error else None
        return Comparison(after.mean - before.mean, interval, p_value, reduction, name)

    def paper_error_reduction(self, column: Column) -> Optional[float]:
        """
        The error reduction in the paper, against the column `against` or the first baseline with a
        score; `None` without scores, or where a `Comparison` has none.
        """
        row = self.row
        others = row.columns[: row.num_baselines] if column.against is None else row.columns
        base = [o.paper for o in others if o.paper is not None and column.against in (None, o.name)]
        has_error = row.percent and not row.lower_is_better
        if column.paper is None or not base or not has_error or base[0] >= 100:
            return None
        return (column.paper - base[0]) / (100 - base[0])


def shares(results: Results, *rows: Row) -> List[Share]:
    """The scores of rows, per share of the training data, ascending."""
    known = []
    for row, fraction in ((each, part) for each in rows for part in results.fractions(each.name)):
        found = {c: results.scores(row.name, c.name, fraction) for c in row.columns}
        cells = {c.name: Cell(c, scores) for c, scores in found.items() if _values(c, scores)}
        name, of_share = row.name, row
        if len(results.fractions(row.name)) > 1:
            name += f", {100 * fraction:g} %"
            if fraction < 1:
                of_share = replace(row, columns=tuple(replace(c, paper=None) for c in row.columns))
        known.append(Share(of_share, fraction, name, cells))
    return known


def _values(column: Column, scores: List[Score]) -> List[float]:
    metrics = [{**each["training"], **(each["evaluation"] or {})} for each in scores]
    return [each[column.metric] for each in metrics if each.get(column.metric) is not None]


def holm(p_values: Sequence[float]) -> List[float]:
    """Corrects p-values for the number of tests: Holm (1979). They keep their order."""
    order = numpy.argsort(p_values)
    corrected = numpy.array(p_values)[order] * numpy.arange(len(order), 0, -1)
    corrected = numpy.maximum.accumulate(corrected).clip(max=1)
    return corrected[numpy.argsort(order)].tolist()


def _with_seeds(cell: Cell, *others: Cell) -> Optional[numpy.ndarray]:
    """
    Bootstrap samples of a mean, or of its difference from another, with the error over seeds that
    `Share.difference` explains. `None` without samples, or if a number is not finite.
    """
    cells = [cell, *others]
    values = [numpy.array(each.values) for each in cells]
    kinds = [kind for kind in SAMPLES if all(kind in each.samples for each in cells)]
    samples = [each.samples[kind] for each in cells for kind in kinds[:1]]
    if not samples or not all(numpy.isfinite(x).all() for x in samples + values):
        return None
    of_seeds = [each for each in values if len(each) > 1]
    variances = [each.var(ddof=1) / len(each) for each in of_seeds]
    change = numpy.tile(samples[0] - sum(samples[1:]), _DRAWS_PER_SAMPLE)
    if not any(variances):
        return change
    degrees = sum(variances) ** 2 / sum(v**2 / (len(x) - 1) for v, x in zip(variances, of_seeds))
    borrowed = of_seeds[0].var(ddof=1) if len(of_seeds) < len(cells) else 0
    draws = numpy.random.default_rng(0).standard_t(degrees, len(change))
    return change + (sum(variances) + borrowed) ** 0.5 * draws
