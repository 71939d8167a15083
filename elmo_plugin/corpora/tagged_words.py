"""Sentences of words with one tag each: CoNLL-U and plain columns."""

import re
from dataclasses import dataclass
from typing import Iterator, Tuple

from elmo_plugin.corpora.columns import read_blocks
from elmo_plugin.corpora.conll2003 import DOCUMENT_START
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath

_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Columns of CoNLL-U that hold one label per word.
CONLLU_TAGS = ("upos", "xpos", "deprel")
# The ids of a word, a range (2-3) and an empty node (8.1).
_ID = re.compile(r"\d+([-.]\d+)?")


@dataclass(frozen=True)
class TaggedSentence:
    """Words and their tags, of equal length."""

    words: Tuple[str, ...]
    tags: Tuple[str, ...]


def read_conllu(path: FilePath, tag: str = "upos") -> Iterator[TaggedSentence]:
    """
    Streams the sentences of a file of
    [Universal Dependencies](https://universaldependencies.org/format.html) with one of
    `CONLLU_TAGS`. Skips ranges (`2-3`) and empty nodes (`8.1`). Raises `ValueError` if a line is
    not CoNLL-U or its word has no such tag.
    """
    column = _CONLLU.index(tag)
    for rows in read_blocks(path, separators="\t"):
        words, tags = [], []
        for row, cells in enumerate(rows.cells):
            location = rows.location(row)
            is_right = len(cells) == len(_CONLLU) and _ID.fullmatch(cells[0])
            columns = "the number of a word and nine other columns, separated by tabs"
            expect(is_right, location, f"{columns}, as in CoNLL-U", repr(" ".join(cells)))
            if cells[0].isdecimal():
                advice = f"Choose another column: {', '.join(CONLLU_TAGS)}."
                expect(cells[column] != "_", location, f"a value of `{tag}`", "none", advice)
                words.append(cells[1])
                tags.append(cells[column])
        if words:
            yield TaggedSentence(tuple(words), tuple(tags))


def read_tag_columns(path: FilePath, word_column: int, tag_column: int) -> Iterator[TaggedSentence]:
    """
    Streams the sentences of a file with a word per line, columns between spaces or tabs, and an
    empty line between sentences. Columns count from 1, or from the right from -1. Lines that begin
    with `-DOCSTART-` are skipped. Raises `ValueError` if a column is not there.
    """
    expect(word_column and tag_column, "", "columns from 1, or from the right from -1", "column 0")
    # A word may begin with `#`.
    for rows in read_blocks(path, markers=(DOCUMENT_START,), comment=None):
        if rows.cells[0][0] != DOCUMENT_START:
            rows.check_width(max(abs(word_column), abs(tag_column)), exactly=False)
            words, tags = (rows.column(c - (c > 0)) for c in (word_column, tag_column))
            yield TaggedSentence(words, tags)
