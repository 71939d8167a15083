"""The files of CoNLL-2012, and their columns of brackets around words."""

import os
from dataclasses import dataclass
from typing import Callable, Iterator, List, Optional, Sequence, Tuple

from elmo_plugin.corpora.columns import Rows, read_blocks
from elmo_plugin.util.errors import expect, unexpected
from elmo_plugin.util.text_files import FilePath, find_file

MARKERS = ("#begin", "#end")
MIN_COLUMNS = 12

# A label, and whether it opens. A closing bracket without a label closes the last one opened.
Bracket = Tuple[str, bool]


@dataclass(frozen=True)
class BracketSpan:
    """A span of words that brackets enclose."""

    label: str
    #: Positions of the first and last word in the sentence.
    start: int
    end: int
    #: The position of the opening bracket in its cell.
    order: int
    #: How many other brackets were open when it closed.
    depth: int


def read_rows(path: FilePath) -> Iterator[Rows]:
    """
    Streams the sentences and markers (see `read_blocks`) of a file, or of all files in a folder and
    its subfolders whose names end in `gold_conll` or `gold_conll.gz`, sorted by path. Raises
    `ValueError` if a folder has none, or if a file is malformed, has no sentences or no words.
    """
    for file in _files(path):
        for rows in read_blocks(file, MARKERS):
            expect(
                any(row[3:4] != ["[WORD]"] for row in rows.cells),
                rows.location(0),
                "words in column 4",
                "[WORD], as in the skeletons that CoNLL-2012 distributes",
                "Join them with the words of OntoNotes 5.0 (LDC2013T19) by skeleton2conll.sh of "
                "CoNLL-2012; read what that writes.",
            )
            yield rows


def _files(path: FilePath) -> Sequence[FilePath]:
    folder = find_file(path)
    if not os.path.isdir(folder):
        return [path]
    # `os.walk` does not follow links to folders, which could lead back.
    found = sorted(
        os.path.join(parent, name)
        for parent, _, names in os.walk(folder)
        for name in names
        if name.endswith(("gold_conll", "gold_conll.gz")) and not name.startswith(".")
    )
    advice = "Are there files *_gold_skel? Run skeleton2conll.sh of CoNLL-2012 first."
    expect(found, path, "files *gold_conll in this folder or below it", "none", advice)
    return found


def bracket_spans(
    rows: Rows,
    column: int,
    split: Callable[[str], Optional[List[Bracket]]],
    empty: Sequence[str],
    example: str,
) -> List[BracketSpan]:
    """
    The spans of a column, in the order of the closing brackets. A negative `column` counts from the
    right. `split` returns the brackets of a cell that is not one of `empty`, or `None` if the cell
    is malformed. Raises `ValueError`, which shows the `example`, if a cell is malformed, or a
    bracket is not opened or closed within the sentence.
    """
    spans: List[BracketSpan] = []
    opened: List[Tuple[str, int, int]] = []
    for row, cell in enumerate(rows.column(column)):
        if cell in empty:
            continue
        place, brackets = rows.location(row), split(cell)
        where = f"in column {column % len(rows.cells[row]) + 1}"
        expected = f"brackets such as {example} {where}"
        expect(brackets is not None, place, expected, repr(cell))
        for order, (label, opens) in enumerate(brackets or ()):
            if opens:
                opened.append((label, row, order))
                continue
            matching = [bracket for bracket in opened if label in ("", bracket[0])]
            expected = f"an open bracket for {cell} {where} to close"
            expect(matching, place, expected, "none", "Open it in the same sentence or delete it.")
            label, start, its_order = matching[-1]
            opened.remove(matching[-1])
            spans.append(BracketSpan(label, start, row, its_order, len(opened)))
    for label, row, _ in opened[-1:]:
        where = f"column {column % len(rows.cells[row]) + 1}"
        expected = f"the bracket ({label} of {where} to close within its sentence"
        raise unexpected(rows.location(row), expected, "the end of the sentence")
    return spans
