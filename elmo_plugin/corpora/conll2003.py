"""
Named entities in the columns of the [CoNLL-2003 shared task](https://aclanthology.org/W03-0419/):
one word per line, its tag in the last column. Chunks are in another column of such files, and in
the last one in those of the [CoNLL-2000 shared task](https://aclanthology.org/W00-0726/).
"""

import re
from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple

from elmo_plugin.corpora.columns import is_cell, read_blocks
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath

DOCUMENT_START = "-DOCSTART-"
_TAG = re.compile(r"O|[BIESLU]-.+")


@dataclass(frozen=True)
class Sentence:
    """Words with their tags."""

    #: True if a `-DOCSTART-` line precedes the sentence.
    is_document_start: bool
    words: Tuple[str, ...]
    #: As in the file; empty if the file has no tags.
    tags: Tuple[str, ...]


def read_sentences(path: FilePath, tag_column: Optional[int] = None) -> Iterator[Sentence]:
    """
    Streams the sentences of a file (see `find_file`). A line holds a word in the first column and
    its tag in another, or only a word. See `tags_to_spans` for the tagging schemes.

    # Parameters

    tag_column : `Optional[int]`, optional (default = `None`)
        The column of the tags, counted from 1. Default: the last one.

    # Raises

    `ValueError`
        If a line has an invalid tag, no such column, or another number of columns than the first
        line, and as `read_blocks` does; the message names file and line.
    """
    is_document_start, width = False, 0
    for rows in read_blocks(path, markers=(DOCUMENT_START,), comment=None):
        if rows.cells[0][0] == DOCUMENT_START:
            is_document_start = True
            continue
        width = width or len(rows.cells[0])
        rows.check_width(width)
        tags: Tuple[str, ...] = ()
        if width > 1:
            column = tag_column or width
            rows.check_width(column, exactly=False)
            tags = rows.column(column - 1)
            expected = f"a tag such as O, B-PER or I-PER in column {column}"
            for row, tag in enumerate(tags):
                expect(_TAG.fullmatch(tag), rows.location(row), expected, repr(tag))
        yield Sentence(is_document_start, rows.column(0), tags)
        is_document_start = False


def check_word(word: str) -> None:
    """Raises `ValueError` if the columns cannot hold a word."""
    is_right = is_cell(word) and word != DOCUMENT_START
    expect(is_right, "", f"words without spaces, and not {DOCUMENT_START}", repr(word))


def format_sentence(
    words: Sequence[str],
    predicted: Sequence[str],
    gold: Optional[Sequence[str]] = None,
    is_document_start: bool = False,
) -> str:
    """
    Writes a sentence as `conlleval` reads it: one line per word, with its gold tag (if given) and
    its predicted tag. The last line is empty. For the words see `check_word`.

    With `is_document_start`, a `-DOCSTART-` line comes first. `conlleval` counts it as a correct
    tag, which slightly changes its accuracy and no other score.
    """
    columns = [words, predicted] if gold is None else [words, gold, predicted]
    for word in words:
        check_word(word)
    rows = list(zip(*columns, strict=True))
    if is_document_start:
        start = (DOCUMENT_START, *["O"] * (len(columns) - 1))
        rows = [start, ("",), *rows]
    return "\n".join([*(" ".join(row) for row in rows), "", ""])
