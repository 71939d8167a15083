"""Draws the scores of a study, per column or over the share of training data."""

from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from elmo_plugin.analysis.studies.comparison import Cell, cells
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row
from elmo_plugin.util.plotting import finish_axis, label_of, mark_style, new_figure, save_picture


class Panel(NamedTuple):
    """A plot of one or more rows of a study."""

    title: str
    #: In inches.
    height: float
    #: Receives the axes to draw on.
    draw: Callable[[Any], None]


class _Line(NamedTuple):
    """The cells of a row with one share of the training data, by column name."""

    name: str
    fraction: float
    cells: Dict[str, Cell]
    scale: float


def panels(results: Results) -> List[Panel]:
    """
    One panel per row with scores: the mean and interval of each column, drawn as curves if there
    are several shares of training data. Rows that are not compared share a panel per unit. The
    paper's scores come from other data, and would hide the differences between columns.
    """
    found = []
    others: Dict[str, List[_Line]] = {}
    for row in results.rows:
        lines = _lines(results, row)
        if not row.compare:
            others.setdefault(_unit(row), []).extend(lines)
        elif len(results.fractions(row.name)) > 1 and lines:
            found.append(Panel(row.name, 2.8, partial(_curves, row=row, lines=lines)))
        elif lines:
            height = 0.8 + 0.3 * len(lines[0].cells)
            found.append(Panel(row.name, height, partial(_points, row=row, line=lines[0])))
    for unit, lines in others.items():
        if lines:
            height = 1.1 + 0.3 * len(lines)
            # Titles must differ on a page.
            title = f"{results.title}, {unit}" if unit else results.title
            found.append(Panel(title, height, partial(_values, unit=unit, lines=lines)))
    return found


def draw_scores(results: Results, pictures: List[Path]) -> None:
    """Draws the panels, if any, into SVG, PNG or PDF files. Needs matplotlib."""
    found = panels(results)
    if not found:
        return
    heights = [panel.height + 0.3 for panel in found]
    figure = new_figure(figsize=(4.5, sum(heights)))
    axes = figure.subplots(len(found), height_ratios=heights, squeeze=False)
    for axis, panel in zip(axes.flat, found):
        axis.set_title(label_of(panel.title), fontsize=10)
        panel.draw(axis)
    for picture in pictures:
        save_picture(figure, picture, bbox_inches="tight")


def _lines(results: Results, row: Row) -> List[_Line]:
    lines = []
    fractions = results.fractions(row.name)
    for fraction in fractions:
        share = f", {100 * fraction:g} %" if len(fractions) > 1 else ""
        if found := cells(results, row, fraction):
            lines.append(_Line(f"{row.name}{share}", fraction, found, row.scale))
    return lines


def _curves(axis: Any, row: Row, lines: List[_Line]) -> None:
    for number, column in enumerate(row.columns):
        known = [
            (line.fraction, line.cells[column.name]) for line in lines if column.name in line.cells
        ]
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
    fractions = [line.fraction for line in lines]
    axis.set_xscale("log")
    axis.set_xticks([100 * f for f in fractions], [f"{100 * f:g} %" for f in fractions])
    axis.minorticks_off()
    axis.set_xlabel("share of the training data", fontsize=8)
    axis.set_ylabel(_unit(row), fontsize=8)
    axis.legend(fontsize=8, frameon=False)
    finish_axis(axis, "y")


def _points(axis: Any, row: Row, line: _Line) -> None:
    numbers = {column.name: number for number, column in enumerate(row.columns)}
    for height, (name, found) in enumerate(line.cells.items()):
        bar = [[length] for length in _bar(row, found)]
        mean = row.scale * found.mean
        axis.errorbar([mean], [height], xerr=bar, capsize=3, **mark_style(numbers[name]))
    axis.set_xlabel(_unit(row), fontsize=8)
    _name_lines(axis, list(line.cells))


def _values(axis: Any, unit: str, lines: List[_Line]) -> None:
    """Draws a mark for each column. The axis starts at zero unless a value is negative."""
    names = list(dict.fromkeys(name for line in lines for name in line.cells))
    for number, name in enumerate(names):
        heights = [height for height, line in enumerate(lines) if name in line.cells]
        means = [lines[height].scale * lines[height].cells[name].mean for height in heights]
        axis.plot(means, heights, label=label_of(name), **mark_style(number))
    if all(found.mean >= 0 for line in lines for found in line.cells.values()):
        axis.set_xlim(left=0)
    axis.set_xlabel(unit, fontsize=8)
    # The legend names only these axes, although the figure may have others.
    handles = axis.get_legend_handles_labels()
    axis.figure.legend(*handles, fontsize=8, frameon=False, ncols=3, loc="outside lower center")
    _name_lines(axis, [line.name for line in lines])


def _name_lines(axis: Any, names: List[str]) -> None:
    """Names the lines of a plot from top to bottom."""
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
