"""Draws the scores of a study, per column or over the share of training data."""

from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property, partial
from io import BytesIO
from typing import Any, Callable, Dict, List, Tuple

from elmo_plugin.analysis.studies.comparison import Cell, Share, shares
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


def figures(results: Results) -> List[Figure]:
    """
    One figure per row with scores: the mean and interval of each column, drawn as curves if there
    are several shares of training data. Rows that are not compared share a figure per unit. The
    paper's scores come from other data, and would hide the differences between columns.
    """
    found = []
    others: Dict[str, List[Share]] = {}
    for row in results.rows:
        known = shares(results, row)
        scored = [share for share in known if share.cells]
        if not row.compare:
            others.setdefault(_unit(row), []).extend(scored)
        elif len(known) > 1 and scored:
            found.append(Figure(row.name, 2.8, partial(_curves, row=row, of_row=scored)))
        elif scored:
            height = 0.8 + 0.3 * len(scored[0].cells)
            found.append(Figure(row.name, height, partial(_points, share=scored[0])))
    for unit, scored in others.items():
        if scored:
            height = 1.1 + 0.3 * len(scored)
            # Captions must differ on a page.
            caption = f"{results.title}, {unit}" if unit else results.title
            found.append(Figure(caption, height, partial(_values, unit=unit, lines=scored)))
    return found


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


def _points(axis: Any, share: Share) -> None:
    row = share.row
    numbers = {column.name: number for number, column in enumerate(row.columns)}
    for height, (name, found) in enumerate(share.cells.items()):
        bar = [[length] for length in _bar(row, found)]
        mean = row.scale * found.mean
        axis.errorbar([mean], [height], xerr=bar, capsize=3, **mark_style(numbers[name]))
    axis.set_xlabel(_unit(row), fontsize=8)
    _name_lines(axis, list(share.cells))


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
    _name_lines(axis, [line.name for line in lines])


def _name_lines(axis: Any, names: List[str]) -> None:
    axis.set_yticks(range(len(names)), [label_of(name) for name in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
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
