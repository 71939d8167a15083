"""The settings that all pictures share."""

import textwrap
from pathlib import Path
from typing import Any, Dict

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.optional import optional_package

#: Okabe and Ito's palette for colour-blind readers, and marks for prints without colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
MARKERS = "osD^vPX"


def label_of(text: str) -> str:
    """
    A text as a label of matplotlib: in at most two lines, so that the plot beside it keeps its
    width, and with its dollar signs, between which matplotlib would read mathematics.
    """
    lines = textwrap.wrap(text, 44, max_lines=2, placeholder="…")
    return "\n".join(lines).replace("$", r"\$")


def mark_style(number: int, linestyle: str = "none") -> Dict[str, Any]:
    """Colour and mark of the series with this number, as arguments of `plot` or `errorbar`."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5,
        "linestyle": linestyle,
    }


def finish_axis(axis: Any, values: str) -> None:
    """Small labels, and a grid across the axis of the values, `x`, `y` or `both`."""
    axis.tick_params(which="both", labelsize=8)
    axis.grid(True, which="both", axis=values, color="#999999", alpha=0.3, linewidth=0.5)


def new_figure(**settings: Any) -> Any:
    """
    A `matplotlib.figure.Figure` with these settings, which is drawn into files. It is made without
    `pyplot`, whose backend is the caller's. Raises `ConfigurationError` without matplotlib.
    """
    module = optional_package("matplotlib.figure", "Drawing", error=ConfigurationError)
    return module.Figure(layout="constrained", **settings)


def write_figure(figure: Any, output: Any, kind: str, **settings: Any) -> None:
    """
    Writes a figure of `new_figure` into a file as `svg`, `png` or `pdf`. An SVG of the same numbers
    is the same, byte for byte. `settings` are those of `savefig`.
    """
    matplotlib = optional_package("matplotlib", "Drawing", error=ConfigurationError)
    metadata = {"Date": None} if kind == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "elmo"}):
        figure.savefig(output, format=kind, metadata=metadata, **settings)


def save_picture(figure: Any, picture: Path, **settings: Any) -> None:
    """Writes a figure of `new_figure`, by the suffix of the name as SVG, PNG or PDF."""
    with atomic_write(picture) as unfinished:
        write_figure(figure, unfinished, picture.suffix.removeprefix("."), dpi=150, **settings)
