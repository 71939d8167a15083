"""
Named entities in the columns of the [CoNLL-2003 shared task](https://aclanthology.org/W03-0419/):
one word per line, its tag in the last column. Chunks are in another column of such files, and in
the last one in those of the [CoNLL-2000 shared task](https://aclanthology.org/W00-0726/).
"""

import os
import re
from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple, Union

from elmo_plugin.corpora.columns import Rows, read_blocks

_DOCUMENT_START = "-DOCSTART-"
_TAG = re.compile(r"O|[BIESLU]-.+")
# Words may contain other Unicode white space.
_BLANK = re.compile(r"[ \t\r\n]")


@dataclass(frozen=True)
class Sentence:
    """Words with their tags."""

    #: True if a `-DOCSTART-` line precedes the sentence.
    is_document_start: bool
    words: Tuple[str, ...]
    #: As in the file; empty if the file has no tags.
    tags: Tuple[str, ...]


def read_sentences(
    path: Union[str, os.PathLike], tag_column: Optional[int] = None
) -> Iterator[Sentence]:
    """
    Streams the sentences of a file (see `find_file`). A line holds a word in the first column and
    its tag in another, or only a word. See `tags_to_spans` for the tagging schemes.

    # Parameters

    path : `Union[str, os.PathLike]`
    tag_column : `Optional[int]`, optional (default = `None`)
        The column of the tags, counted from 1. Default: the last one.

    # Raises

    `ValueError`
        If a line has an invalid tag or another number of columns than the first line, if there is
        no such column, if the file holds no sentences, and as `numbered_lines` does; the message
        names file and line.
    """
    is_document_start, width = False, None
    for rows in read_blocks(path, markers=(_DOCUMENT_START,), comment=None):
        if rows.cells[0][0] == _DOCUMENT_START:
            is_document_start = True
            continue
        width = width or len(rows.cells[0])
        column = -1 if tag_column is None else tag_column - 1
        _check(rows, width, column)
        tags = rows.column(column) if width > 1 else ()
        yield Sentence(is_document_start, rows.column(0), tags)
        is_document_start = False


def _check(rows: Rows, width: int, column: int) -> None:
    if 1 < width <= column:
        raise ValueError(
            f"{rows.location(0)}: expected tags in column {column + 1} (`tag_column`), found "
            f"{width} columns."
        )
    for row, cells in enumerate(rows.cells):
        if len(cells) != width:
            raise ValueError(
                f"{rows.location(row)}: expected {width} columns as in the first sentence, found "
                f"{len(cells)}. Write a word first and its tag last on each line, or only words in "
                "the whole file, and an empty line after each sentence."
            )
        if width > 1 and not _TAG.fullmatch(cells[column]):
            name = "the last column" if column < 0 else f"column {column + 1}"
            raise ValueError(
                f"{rows.location(row)}: expected a tag such as O, B-PER or I-PER in {name}, found "
                f"{cells[column]!r}. Write O, or B-, I-, E-, S-, L- or U- and the entity's type."
            )


def check_word(word: str) -> None:
    """
    Refuses a word that the columns cannot represent.

    # Raises

    `ValueError`
        If the word is empty, contains a space, tab or line end, or is `-DOCSTART-`.
    """
    if not word or _BLANK.search(word) or word == _DOCUMENT_START:
        raise ValueError(
            f"expected words without spaces, and not {_DOCUMENT_START}, found {word!r}"
        )


def format_sentence(
    words: Sequence[str],
    predicted: Sequence[str],
    gold: Optional[Sequence[str]] = None,
    is_document_start: bool = False,
) -> str:
    """
    Writes a sentence as `conlleval` reads it: one line per word, with its gold tag (if given) and
    its predicted tag. The last line is empty.

    With `is_document_start`, a `-DOCSTART-` line comes first. `conlleval` counts it as a correct
    tag, which slightly changes its accuracy and no other score.

    # Raises

    `ValueError`
        If the numbers of words and tags differ, and as `check_word` does.
    """
    columns = [words, predicted] if gold is None else [words, gold, predicted]
    for word in words:
        check_word(word)
    rows = list(zip(*columns, strict=True))
    if is_document_start:
        start = (_DOCUMENT_START, *["O"] * (len(columns) - 1))
        rows = [start, ("",), *rows]
    return "\n".join([*(" ".join(row) for row in rows), "", ""])
