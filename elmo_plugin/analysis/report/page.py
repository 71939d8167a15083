from base64 import b64encode
from dataclasses import dataclass, field
from importlib.resources import files
from io import BytesIO
from typing import Any, Callable, List

from elmo_plugin.analysis.studies.tables import Table
from elmo_plugin.util.optional import optional_package
from elmo_plugin.util.plotting import new_figure, write_figure


class Figure:
    """
    A picture of a section, 4.5 inches wide.

    # Parameters

    caption : `str`
    draw : `Callable[[Any], object]`
        Draws on axes of matplotlib.
    height : `float`, optional (default = `3.0`)
        In inches.

    # Raises

    `ConfigurationError`
        If matplotlib is not installed.
    """

    def __init__(self, caption: str, draw: Callable[[Any], object], height: float = 3.0) -> None:
        figure = new_figure(figsize=(4.5, height))
        draw(figure.subplots())
        output = BytesIO()
        write_figure(figure, output, "svg")
        self.caption = caption
        #: An SVG file.
        self.svg = output.getvalue()

    def url(self) -> str:
        """The file itself as a URL."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg).decode()}"


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    title: str
    #: The file from which the section was read.
    source: str
    #: Paragraphs of plain text.
    notes: List[str] = field(default_factory=list)
    figures: List[Figure] = field(default_factory=list)
    tables: List[Table] = field(default_factory=list)
    #: The command that wrote the results.
    command: str = ""


def page(title: str, sections: List[Section]) -> str:
    """
    A page of HTML that needs no other file and no network.

    # Raises

    `ImportError`
        If Jinja is not installed.
    """
    jinja2 = optional_package("jinja2", "A report")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True)
    template = (files("elmo_plugin.analysis.report") / "page.html").read_text(encoding="utf-8")
    return environment.from_string(template).render(title=title, sections=sections)
