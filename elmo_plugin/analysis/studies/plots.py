"""Pictures of a study: scores over the share of training data, or of each column."""

from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

from elmo_plugin.analysis.studies.comparison import Cell, cell
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row
from elmo_plugin.util.pictures import COLOURS, MARKS, import_pyplot

__all__ = ["Panel", "draw_scores", "panels"]


class Panel(NamedTuple):
    """
    A picture of one or more rows of a study.

    # Parameters

    title : `str`
    height : `float`
        In inches.
    draw : `Callable[[Any], None]`
        Draws on axes of matplotlib.
    """

    title: str
    height: float
    draw: Callable[[Any], None]


def panels(results: Results) -> List[Panel]:
    """
    A panel for each row that has a score: the mean of each column, with the interval of its `Cell`
    as a bar, side by side or, if there are several shares of the training data, over these. Rows
    whose columns are not compared share one panel.

    The paper's scores are in the tables only: they are of other data, and on the same axis they
    would hide the differences between columns.
    """
    rows = results.scored_rows()
    found = []
    for row in rows:
        if row.compare and len(results.fractions(row.name)) > 1:
            found.append(Panel(row.name, 2.8, partial(_curves, results=results, row=row)))
        elif row.compare:
            height = 0.8 + 0.3 * len(row.columns)
            found.append(Panel(row.name, height, partial(_points, results=results, row=row)))
    others = [row for row in rows if not row.compare]
    if others:
        height = 1.1 + 0.3 * len(others)
        found.append(Panel("values", height, partial(_values, results=results, rows=others)))
    return found


def draw_scores(results: Results, pictures: List[Path]) -> None:
    """
    All panels of a study, one below the other. Without any, nothing is written.

    # Parameters

    results : `Results`
    pictures : `List[Path]`
        The files to write, SVG, PNG or PDF.

    # Raises

    `ConfigurationError`
        If matplotlib is not installed.
    """
    pyplot = import_pyplot()
    found = panels(results)
    if not found:
        return
    heights = [panel.height + 0.3 for panel in found]
    figure, axes = pyplot.subplots(
        len(found),
        figsize=(4.5, sum(heights)),
        height_ratios=heights,
        squeeze=False,
        constrained_layout=True,
    )
    for axis, panel in zip(axes.flat, found):
        axis.set_title(panel.title, fontsize=10)
        panel.draw(axis)
    for picture in pictures:
        metadata = {"Date": None} if picture.suffix == ".svg" else None
        figure.savefig(picture, dpi=150, metadata=metadata)
    pyplot.close(figure)


def _curves(axis: Any, results: Results, row: Row) -> None:
    fractions = results.fractions(row.name)
    for number, column in enumerate(row.columns):
        cells = [(f, cell(results, row, number, f)) for f in fractions]
        known = [(fraction, found) for fraction, found in cells if found is not None]
        axis.errorbar(
            [100 * fraction for fraction, _ in known],
            [_scale(row) * found.mean for _, found in known],
            yerr=list(zip(*(_bar(row, found) for _, found in known))) or None,
            label=column.name,
            capsize=2,
            **{**_style(number), "linestyle": "-"},
        )
    axis.set_xscale("log")
    axis.set_xticks([100 * f for f in fractions], [f"{100 * f:g} %" for f in fractions])
    axis.minorticks_off()
    axis.set_xlabel("share of the training data", fontsize=8)
    axis.set_ylabel(_unit(row), fontsize=8)
    axis.legend(fontsize=8, frameon=False)
    _finish(axis, "y")


def _points(axis: Any, results: Results, row: Row) -> None:
    (fraction,) = results.fractions(row.name)
    names: List[str] = []
    for number, column in enumerate(row.columns):
        found = cell(results, row, number, fraction)
        if found is not None:
            bar = [[length] for length in _bar(row, found)]
            mean = _scale(row) * found.mean
            axis.errorbar([mean], [len(names)], xerr=bar, capsize=3, **_style(number))
            names.append(column.name)
    axis.set_xlabel(_unit(row), fontsize=8)
    _name_lines(axis, names)


def _values(axis: Any, results: Results, rows: Sequence[Row]) -> None:
    """A line for each row and fraction, with a mark for each column; the axis starts at zero."""
    lines = [(row, fraction) for row in rows for fraction in results.fractions(row.name)]
    names = list(dict.fromkeys(column.name for row in rows for column in row.columns))
    for number, name in enumerate(names):
        points = [
            (_scale(row) * found.mean, place)
            for place, (row, fraction) in enumerate(lines)
            for n, column in enumerate(row.columns)
            if column.name == name and (found := cell(results, row, n, fraction)) is not None
        ]
        axis.plot(*zip(*points), label=name, **_style(number))
    axis.set_xlim(left=0)
    units = {_unit(row) for row in rows}
    axis.set_xlabel(units.pop() if len(units) == 1 else "", fontsize=8)
    axis.figure.legend(fontsize=8, frameon=False, ncols=3, loc="outside lower center")
    _name_lines(axis, [row.name for row, _ in lines])


def _name_lines(axis: Any, names: List[str]) -> None:
    """Names the lines of a picture from the top to the bottom."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    _finish(axis, "x")


def _finish(axis: Any, values: str) -> None:
    """`values` names the axis of the scores, `x` or `y`."""
    axis.tick_params(labelsize=8)
    axis.grid(True, axis=values, color="#999999", alpha=0.3, linewidth=0.5)


def _style(number: int) -> Dict[str, Any]:
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKS[number % len(MARKS)],
        "markersize": 5,
        "linestyle": "none",
    }


def _bar(row: Row, found: Cell) -> Tuple[float, float]:
    """The lengths of an error bar below and above the mean."""
    low, high = found.interval or (found.mean, found.mean)
    # The mean of few seeds may lie outside of a percentile interval.
    return _scale(row) * max(0.0, found.mean - low), _scale(row) * max(0.0, high - found.mean)


def _scale(row: Row) -> float:
    return 100.0 if row.percent else 1.0


def _unit(row: Row) -> str:
    metrics = {column.metric for column in row.columns}
    # If the columns have several metrics, their names say which.
    name = metrics.pop().removeprefix("best_validation_").replace("_", " ")
    if "f1" in name:
        # Such as AllenNLP's `f1-measure-overall`.
        name = "F1"
    return f"{'' if metrics else name}{', %' if row.percent else ''}"
