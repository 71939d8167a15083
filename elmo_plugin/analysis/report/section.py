from dataclasses import dataclass, field
from typing import List

__all__ = ["Figure", "Section", "SectionTable"]


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
class SectionTable:
    """
    # Parameters

    head : `List[str]`
    lines : `List[List[str]]`
    num_left : `int`
        The columns of words; those after them are numbers.
    """

    head: List[str]
    lines: List[List[str]]
    num_left: int = 1


@dataclass(frozen=True)
class Section:
    """
    A part of the page.

    # Parameters

    title : `str`
    notes : `List[str]`
        Paragraphs of plain text.
    figures : `List[Figure]`
    tables : `List[SectionTable]`
    command : `str`
        What made it.
    source : `str`
        The file that it was read from.
    """

    title: str
    source: str
    notes: List[str] = field(default_factory=list)
    figures: List[Figure] = field(default_factory=list)
    tables: List[SectionTable] = field(default_factory=list)
    command: str = ""
