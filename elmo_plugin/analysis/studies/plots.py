"""Draws the differences and scores of a study."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy

from elmo_plugin.analysis.studies.comparison import Cell, Share, shares
from elmo_plugin.analysis.studies.findings import VERDICTS, Finding
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row
from elmo_plugin.util.plotting import finish_axis, label_of, mark_style, new_figure, write_figure


@dataclass(frozen=True)
class Figure:
    """A picture, 4.5 inches wide and `height` inches high."""

    caption: str
    height: float
    #: Receives the axes to draw on.
    draw: Callable[[Any], object]

    @cached_property
    def svg(self) -> bytes:
        """The content of an SVG file."""
        figure, output = new_figure(figsize=(4.5, self.height)), BytesIO()
        self.draw(figure.subplots())
        write_figure(figure, output, "svg")
        return output.getvalue()

    def url(self) -> str:
        """The picture itself as a `data:` URL."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg).decode()}"


def figures(results: Results, found: Sequence[Finding]) -> List[Figure]:
    """
    The differences that were found; a figure per row with scores for several shares of training
    data, with a curve per column; and a figure per unit of rows that are not compared. The paper's
    scores come from other data, and would hide the differences between columns.
    """
    drawn = forest(found)
    others: Dict[str, List[Share]] = {}
    for row in results.rows:
        scored = [share for share in shares(results, row) if share.cells]
        if not row.compare:
            others.setdefault(_unit(row), []).extend(scored)
        elif len(scored) > 1:
            drawn.append(Figure(row.name, 2.8, partial(_curves, row=row, of_row=scored)))
    for unit, scored in others.items():
        if scored:
            height = 1.1 + 0.3 * len(scored)
            # Captions must differ on a page.
            caption = f"{results.title}, {unit}" if unit else results.title
            drawn.append(Figure(caption, height, partial(_values, unit=unit, lines=scored)))
    return drawn


def forest(found: Sequence[Finding]) -> List[Figure]:
    """The differences with their intervals, in one figure if there are any."""
    height = 0.7 + 0.42 * len(found)
    return [Figure("Differences", height, partial(_differences, found=found))] if found else []


def draw_intervals(
    axis: Any, heights: Sequence[float], values: Any, intervals: Any, number: int, **style: Any
) -> None:
    """Marks of series `number` at `values`, with bars from `intervals`, shape `(num_values, 2)`."""
    # The mean of few seeds may lie outside a percentile interval.
    lengths = numpy.maximum(0.0, (numpy.subtract(intervals, numpy.c_[values]) * [-1, 1]).T)
    axis.errorbar(values, heights, xerr=lengths, capsize=2, **{**mark_style(number), **style})


def _differences(axis: Any, found: Sequence[Finding]) -> None:
    for number, verdict in enumerate(VERDICTS):
        heights = [height for height, each in enumerate(found) if each.verdict == verdict]
        if heights:
            values, intervals = zip(*(found[height].difference for height in heights))
            percent = (100 * numpy.array(values), 100 * numpy.array(intervals))
            fill = {} if number < 2 else {"markerfacecolor": "none"}
            draw_intervals(axis, heights, *percent, number, label=verdict, **fill)
    axis.axvline(0, color="#666666", linewidth=0.8)
    axis.set_xlabel("difference and its 95 % interval", fontsize=8)
    axis.figure.legend(fontsize=8, frameon=False, ncols=2, loc="outside lower center")
    names = ((f"{each.where}: {each.model}", f"− {each.base}") for each in found)
    name_lines(axis, ["\n".join(map(label_of, name)) for name in names])


def _curves(axis: Any, row: Row, of_row: List[Share]) -> None:
    for number, column in enumerate(row.columns):
        known = [(s.fraction, s.cells[column.name]) for s in of_row if column.name in s.cells]
        if known:
            # Side by side, so that the bars of two models do not hide each other.
            shift = 1.06 ** (number - (len(row.columns) - 1) / 2)
            axis.errorbar(
                [100 * fraction * shift for fraction, _ in known],
                [row.scale * found.mean for _, found in known],
                yerr=list(zip(*(_bar(row, found) for _, found in known))),
                label=label_of(column.name),
                capsize=2,
                **mark_style(number, linestyle="-"),
            )
    fractions = [share.fraction for share in of_row]
    axis.set_xscale("log")
    axis.set_xticks([100 * f for f in fractions], [f"{100 * f:g} %" for f in fractions])
    axis.minorticks_off()
    axis.set_xlabel("share of the training data", fontsize=8)
    axis.set_ylabel(_unit(row), fontsize=8)
    axis.legend(fontsize=8, frameon=False)
    finish_axis(axis, "y")


def _values(axis: Any, unit: str, lines: List[Share]) -> None:
    """Draws a mark for each column. The axis starts at zero unless a value is negative."""
    names = list(dict.fromkeys(name for line in lines for name in line.cells))
    for number, name in enumerate(names):
        heights = [height for height, line in enumerate(lines) if name in line.cells]
        means = [lines[height].row.scale * lines[height].cells[name].mean for height in heights]
        axis.plot(means, heights, label=label_of(name), **mark_style(number))
    if all(found.mean >= 0 for line in lines for found in line.cells.values()):
        axis.set_xlim(left=0)
    axis.set_xlabel(unit, fontsize=8)
    axis.figure.legend(fontsize=8, frameon=False, ncols=3, loc="outside lower center")
    name_lines(axis, [label_of(line.name) for line in lines])


def name_lines(axis: Any, labels: List[str]) -> None:
    """Names the heights 0, 1, … from the top."""
    axis.set_yticks(range(len(labels)), labels)
    axis.set_ylim(len(labels) - 0.5, -0.5)
    finish_axis(axis, "x")


def _bar(row: Row, found: Cell) -> Tuple[float, float]:
    """The lengths of the error bar below and above the mean."""
    low, high = found.interval or (found.mean, found.mean)
    if row.percent:
        # With few seeds, Student's t distribution exceeds the limits of a score.
        low, high = max(low, 0.0), min(high, 1.0)
    # The mean of few seeds may lie outside a percentile interval.
    return row.scale * max(0.0, found.mean - low), row.scale * max(0.0, high - found.mean)


def _unit(row: Row) -> str:
    metrics = {column.metric for column in row.columns}
    # Columns with several metrics say in their names which they use.
    name = metrics.pop().removeprefix("best_validation_").replace("_", " ")
    if "f1" in name:
        # For example AllenNLP's `f1-measure-overall`.
        name = "F1"
    return ", ".join([*([] if metrics else [name]), *(["%"] if row.percent else [])])
