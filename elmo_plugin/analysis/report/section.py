from dataclasses import dataclass, field
from typing import List

from elmo_plugin.analysis.studies.tables import Table


@dataclass(frozen=True)
class Figure:
    """
    # Parameters

    caption : `str`
    svg : `str`
        In the colours of the page, see `svg_of`.
    """

    caption: str
    svg: str


@dataclass(frozen=True)
class Section:
    """
    A part of the page.

    # Parameters

    title : `str`
    notes : `List[str]`
        Paragraphs of plain text.
    figures : `List[Figure]`
    tables : `List[Table]`
    command : `str`
        The command that wrote the results.
    source : `str`
        The file from which the section was read.
    """

    title: str
    source: str
    notes: List[str] = field(default_factory=list)
    figures: List[Figure] = field(default_factory=list)
    tables: List[Table] = field(default_factory=list)
    command: str = ""
