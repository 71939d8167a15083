"""The settings that all pictures share."""

from pathlib import Path
from typing import Any

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.optional import optional_package

#: Okabe and Ito's palette for colour-blind readers, and marks for prints without colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
MARKERS = "osD^vPX"


def import_pyplot() -> Any:
    """
    `matplotlib.pyplot`, which draws into files and needs no screen.

    # Raises

    `ConfigurationError`
        If matplotlib is not installed.
    """
    matplotlib = optional_package("matplotlib", "Drawing", error=ConfigurationError)
    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same SVG for the same numbers.
    pyplot.rcParams["svg.hashsalt"] = "elmo"
    return pyplot


def save_picture(figure: Any, picture: Path, **settings: Any) -> None:
    """
    Writes a figure of matplotlib as SVG, PNG or PDF, by the ending of the name. `settings` are
    those of `savefig`.
    """
    kind = picture.suffix.removeprefix(".")
    with atomic_write(picture) as unfinished:
        # Without its date, an SVG of the same numbers is the same file.
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(unfinished, format=kind, dpi=150, metadata=metadata, **settings)
