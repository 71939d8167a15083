"""
Files with a word per line and an empty line after sentences. Cells are between spaces or tabs, in
`.csv` files between commas.
"""

import csv
import re
from dataclasses import dataclass
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath, has_suffix, numbered_lines

# Words may contain other Unicode white space, such as a no-break space.
_BLANK = re.compile(r"[ \t\r\n]")


@dataclass(frozen=True)
class Rows:
    """Consecutive lines of a file, split into cells."""

    path: FilePath
    #: The line number of the first row.
    first_line: int
    #: The cells of each row.
    cells: Sequence[Sequence[str]]

    def column(self, column: int) -> Tuple[str, ...]:
        """The cells of a column; negative numbers count from the right."""
        return tuple(row[column] for row in self.cells)

    def location(self, row: int) -> str:
        """`file:line` of a row."""
        return f"{self.path}:{self.first_line + row}"

    def check_width(self, width: int, *, exactly: bool = True) -> None:
        """Raises `ValueError` unless each row has `width` cells, or at least so many."""
        expected = f"{'' if exactly else 'at least '}{width} columns"
        advice = (
            "Columns are separated by spaces or tabs, in .csv files by commas, sentences by an "
            "empty line."
        )
        for row, cells in enumerate(self.cells):
            is_right = len(cells) == width or (len(cells) > width and not exactly)
            expect(is_right, self.location(row), expected, len(cells), advice)


def read_blocks(
    path: FilePath,
    markers: Sequence[str] = (),
    comment: Optional[str] = "#",
    separators: str = " \t",
) -> Iterator[Rows]:
    """
    Streams the sentences of a file as rows of cells. A sentence ends at an empty line, at a line
    that begins with `comment` (`None`: the format has no comments), and at a line whose first cell
    is one of `markers`. A marker line is yielded alone, as one row with two cells: the marker and
    the whole line. In a `.csv` file, a line is split as Python's `csv` does. Raises `ValueError` if
    the file has no sentences, and as `numbered_lines` does.
    """
    is_csv = has_suffix(path, ".csv")
    # Not `str.split`, which also splits at other Unicode white space.
    cell = re.compile(f"[^{separators}]+")
    first_line = 0
    cells: List[List[str]] = []
    for line_number, line in numbered_lines(path):
        row = next(csv.reader([line]), []) if is_csv else cell.findall(line.strip(" \t"))
        # Spreadsheets write an empty line with its commas.
        row = row if any(map(str.strip, row)) else []
        is_marker = bool(row) and row[0] in markers
        is_comment = bool(row) and comment is not None and row[0].startswith(comment)
        if row and not is_marker and not is_comment:
            first_line = first_line if cells else line_number
            cells.append(row)
            continue
        if cells:
            yield Rows(path, first_line, cells)
            cells = []
        if is_marker:
            yield Rows(path, line_number, [[row[0], line]])
    if cells:
        yield Rows(path, first_line, cells)
    expect(first_line, path, "one word per line", "no words", "Name another file.")


def check_cells(texts: Iterable[str], description: str, reserved: str = "") -> None:
    """Raises `ValueError` unless each text can be a cell, and does not start with `reserved`."""
    expected = f"{description} without spaces"
    if reserved:
        expected += f" that do not start with {reserved}"
    for text in texts:
        is_right = text and not _BLANK.search(text) and not (reserved and text.startswith(reserved))
        expect(is_right, "", expected, repr(text))
