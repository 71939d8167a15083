from dataclasses import dataclass, field
from typing import List

from elmo_plugin.analysis.studies.tables import Table


@dataclass(frozen=True)
class Figure:
    """A picture of a section."""

    caption: str
    #: In the colours of the page, see `svg_of`.
    svg: str


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
