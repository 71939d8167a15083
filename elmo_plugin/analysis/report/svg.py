import hashlib
import io
import re
from html import escape
from typing import Any, Callable

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.optional import optional_package
from elmo_plugin.util.plotting import new_figure, write_figure

# Replaced by the colour of the page's text, which is light or dark.
_INK = "#010203"


def svg_of(
    draw: Callable[[Any], object],
    title: str,
    source: str,
    width: float = 4.0,
    height: float = 3.0,
) -> str:
    """
    An SVG element for a page: it has the colour of the page's text, needs no fonts and no other
    file, and is as wide as the element that contains it.

    # Parameters

    draw : `Callable[[Any], object]`
        Draws on axes of matplotlib.
    title : `str`
        Its text for screen readers.
    source : `str`
        The file of its numbers. Two pictures of a page must differ in title or source.
    width, height : `float`, optional
        In inches. They determine the ratio of the sides, and the size of text relative to them.
    """
    matplotlib = optional_package("matplotlib", "Drawing", error=ConfigurationError)
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    with matplotlib.rc_context({**dict.fromkeys(ink, _INK), "svg.fonttype": "path"}):
        figure = new_figure(figsize=(width, height))
        draw(figure.subplots())
        output = io.StringIO()
        write_figure(figure, output, "svg", transparent=True)
    element = output.getvalue()
    element = element[element.index("<svg") :].replace(_INK, "currentColor")
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    # Element ids must differ between the pictures of a page.
    prefix = f"p{hashlib.sha256(f'{title} {source}'.encode()).hexdigest()[:8]}-"
    element = re.sub(r'(id="|href="#|url\(#)', rf"\1{prefix}", element)
    # The view box gives the ratio, and the page the width.
    first, _, rest = element.partition(">")
    element = re.sub(r' (width|height)="[^"]*"', "", first) + ">" + rest
    return element.replace("<svg", f'<svg role="img" aria-label="{escape(title)}"', 1)


def picture_file(element: str) -> str:
    """An SVG element of `svg_of` as a file of its own: black on white, of the size it was drawn."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', element)
    assert found is not None
    size = f'width="{found[1]}pt" height="{found[2]}pt"'
    return element.replace("<svg", f'<svg {size} style="color: black; background: white"', 1)
