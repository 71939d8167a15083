"""The look that all plots share."""

import textwrap
from pathlib import Path
from typing import Any, Dict

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, optional_package

#: Okabe and Ito's palette for colour-blind readers, and markers for prints without colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
MARKERS = "osD^vPX"


def label_of(text: str) -> str:
    """Wraps a label into at most two lines. Escapes `$`, which marks mathematics in matplotlib."""
    lines = textwrap.wrap(text, 44, max_lines=2, placeholder="…")
    return "\n".join(lines).replace("$", r"\$")


def mark_style(number: int, linestyle: str = "none") -> Dict[str, Any]:
    """Colour and marker of series `number`, as arguments of `plot` or `errorbar`."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 5,
        "linestyle": linestyle,
    }


def finish_axis(axis: Any, values: str) -> None:
    """Sets small labels, and a grid across the value axis: `x`, `y` or `both`."""
    axis.tick_params(which="both", labelsize=8)
    axis.grid(True, which="both", axis=values, color="#999999", alpha=0.3, linewidth=0.5)


def new_figure(**settings: Any) -> Any:
    """Makes a matplotlib `Figure` without `pyplot`, which leaves the caller's backend alone."""
    module = optional_package("matplotlib.figure", "Drawing", error=ConfigurationError)
    return module.Figure(layout="constrained", **settings)


def write_figure(figure: Any, output: Any, kind: str, **settings: Any) -> None:
    """Writes an `svg`, `png` or `pdf`; an SVG of the same numbers always has the same bytes."""
    matplotlib = optional_package("matplotlib", "Drawing", error=ConfigurationError)
    metadata = {"Date": None} if kind == "svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "elmo"}):
        figure.savefig(output, format=kind, metadata=metadata, **settings)


def save_picture(figure: Any, picture: Path, **settings: Any) -> None:
    """Writes a figure to SVG, PNG or PDF, chosen by the suffix of the file name."""
    with atomic_write(picture) as unfinished:
        write_figure(figure, unfinished, picture.suffix.removeprefix("."), dpi=150, **settings)
