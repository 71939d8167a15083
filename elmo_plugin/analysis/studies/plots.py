"""Pictures of a study: scores over the share of training data, or side by side."""

from pathlib import Path
from textwrap import fill
from typing import Any, List, Tuple

from elmo_plugin.analysis.studies.comparison import Cell, cell
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row
from elmo_plugin.util.pictures import COLOURS, MARKS, import_pyplot

__all__ = ["draw_row", "draw_scores"]


def draw_scores(results: Results, pictures: List[Path]) -> None:
    """
    A panel for each row that has a score, see `draw_row`. Without any, nothing is written.

    # Parameters

    results : `Results`
    pictures : `List[Path]`
        The files to write, SVG, PNG or PDF.

    # Raises

    `ConfigurationError`
        If matplotlib is not installed.
    """
    pyplot = import_pyplot()
    rows = results.scored_rows()
    if not rows:
        return
    num_columns = min(3, len(rows))
    num_lines = -(-len(rows) // num_columns)
    figure, axes = pyplot.subplots(
        num_lines,
        num_columns,
        figsize=(3.4 * num_columns, 2.8 * num_lines),
        squeeze=False,
        constrained_layout=True,
    )
    for axis, row in zip(axes.flat, rows):
        axis.set_title(row.name, fontsize=10)
        draw_row(axis, results, row)
    for axis in list(axes.flat)[len(rows) :]:
        axis.axis("off")
    for picture in pictures:
        metadata = {"Date": None} if picture.suffix == ".svg" else None
        figure.savefig(picture, dpi=150, metadata=metadata)
    pyplot.close(figure)


def draw_row(axis: Any, results: Results, row: Row) -> None:
    """
    The mean of each column, with the interval of its `Cell` as a bar: over the share of the
    training data if there are several, else side by side, with the paper's score as a hollow mark.
    """
    axis.set_ylabel(_unit(row), fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(True, axis="y", color="#999999", alpha=0.3, linewidth=0.5)
    if len(results.fractions(row.name)) > 1:
        _curves(axis, results, row)
    else:
        _points(axis, results, row)
    if not row.compare:
        # Rows that are not compared show absolute values: the axis starts at zero.
        axis.update_datalim([(0, 0)])
        axis.autoscale_view()
        axis.set_ylim(bottom=0)


def _curves(axis: Any, results: Results, row: Row) -> None:
    fractions = results.fractions(row.name)
    for number, column in enumerate(row.columns):
        cells = [(f, cell(results, row, number, f)) for f in fractions]
        known = [(fraction, found) for fraction, found in cells if found is not None]
        axis.errorbar(
            [100 * fraction for fraction, _ in known],
            [_scale(row) * found.mean for _, found in known],
            yerr=list(zip(*(_bar(row, found) for _, found in known))) or None,
            color=COLOURS[number % len(COLOURS)],
            marker=MARKS[number % len(MARKS)],
            markersize=4,
            capsize=2,
            label=column.name,
        )
    axis.set_xscale("log")
    axis.set_xticks([100 * f for f in fractions], [f"{100 * f:g} %" for f in fractions])
    axis.minorticks_off()
    axis.set_xlabel("share of the training data", fontsize=8)
    axis.legend(fontsize=8, frameon=False)


def _points(axis: Any, results: Results, row: Row) -> None:
    (fraction,) = results.fractions(row.name)
    for number, column in enumerate(row.columns):
        found = cell(results, row, number, fraction)
        style = {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKS[number % len(MARKS)],
            "markersize": 6,
            "linestyle": "none",
        }
        if found is not None:
            bar = [[length] for length in _bar(row, found)]
            axis.errorbar([number], [_scale(row) * found.mean], yerr=bar, capsize=3, **style)
        if column.paper is not None:
            axis.plot([number + 0.25], [column.paper], markerfacecolor="none", **style)
    # Wrapped, so that the names of neighbouring columns do not overlap.
    names = [fill(column.name, 48 // len(row.columns)) for column in row.columns]
    axis.set_xticks(range(len(row.columns)), names, fontsize=8)
    axis.set_xlim(-0.5, len(row.columns) - 0.5)


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
