"""Files with a word per line, columns separated by spaces, and an empty line after sentences."""

import os
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple, Union

from elmo_plugin.util.text_files import numbered_lines

# Not `str.split`: a word may contain a no-break space or another Unicode separator.
_CELL = re.compile(r"[^ \t]+")


@dataclass(frozen=True)
class Rows:
    """Consecutive lines of a file, split into cells."""

    path: Union[str, os.PathLike]
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


def read_blocks(
    path: Union[str, os.PathLike], markers: Sequence[str] = (), comment: Optional[str] = "#"
) -> Iterator[Rows]:
    """
    Streams the sentences of a file (see `find_file`) as rows of cells. Empty lines, comments and
    markers end a sentence.

    # Parameters

    path : `Union[str, os.PathLike]`
    markers : `Sequence[str]`, optional (default = `()`)
        A line whose first cell is a marker is yielded separately, as one row with two cells: the
        marker and the whole line.
    comment : `Optional[str]`, optional (default = `"#"`)
        The prefix of comment lines; `None` for formats without comments.

    # Raises

    `ValueError`
        See `numbered_lines`, or if the file holds no sentences.
    """
    first_line = 0
    cells: List[List[str]] = []
    for line_number, line in numbered_lines(path):
        row = _CELL.findall(line)
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
    if not first_line:
        raise ValueError(
            f"{path}: expected one word per line, found no words. Name another file, or write "
            "sentences to this one."
        )


def check_width(rows: Rows, minimum: int, *, same: bool = True) -> None:
    """
    Refuses a sentence that has a row of fewer than `minimum` columns or, if `same`, rows of
    different width.

    # Raises

    `ValueError`
    """
    width = len(rows.cells[0])
    for row, cells in enumerate(rows.cells):
        if len(cells) < minimum:
            raise ValueError(
                f"{rows.location(row)}: expected at least {minimum} columns, found {len(cells)}. "
                "Complete the line; columns are separated by spaces or tabs."
            )
        if same and len(cells) != width:
            raise ValueError(
                f"{rows.location(row)}: expected {width} columns as in the first line of the "
                f"sentence, found {len(cells)}. Correct the line, or separate sentences by an "
                "empty line."
            )
