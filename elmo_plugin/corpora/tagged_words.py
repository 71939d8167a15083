"""Sentences of words with one tag each: CoNLL-U and plain columns."""

import re
from dataclasses import dataclass
from typing import Iterator, List, Set, Tuple

from elmo_plugin.corpora.columns import read_blocks
from elmo_plugin.corpora.conll2003 import DOCUMENT_START
from elmo_plugin.corpora.tag_spans import check_span_tag, is_span_tag
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath, has_suffix

_CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
# Columns of CoNLL-U that hold one label per word.
CONLLU_TAGS = ("upos", "xpos", "feats", "deprel")
# The column of a word without features has this value.
_NONE = "_"
# The ids of a word, a range (2-3) and an empty node (8.1).
_ID = re.compile(r"\d+([-.]\d+)?")


@dataclass(frozen=True)
class TaggedSentence:
    """Words and their tags, of equal length, or without tags."""

    words: Tuple[str, ...]
    tags: Tuple[str, ...]


def is_conllu(path: FilePath) -> bool:
    """Whether a file is CoNLL-U, by its name."""
    return has_suffix(path, ".conllu")


def read_conllu(
    path: FilePath, tag: str = "upos", *, any_tags: bool = True, untagged: bool = False
) -> Iterator[TaggedSentence]:
    """
    Streams the sentences of a file of
    [Universal Dependencies](https://universaldependencies.org/format.html) with one of
    `CONLLU_TAGS`. Skips ranges (`2-3`) and empty nodes (`8.1`). Raises `ValueError` if a line is
    not CoNLL-U or its word has no such tag. With `untagged`, no word of a sentence needs a tag.
    Without `any_tags`, tags must be those of `tags_to_spans`.
    """
    column = _CONLLU.index(tag)
    for rows in read_blocks(path, separators="\t"):
        words, tags, missing = [], [], []
        for row, cells in enumerate(rows.cells):
            location = rows.location(row)
            is_right = len(cells) == len(_CONLLU) and _ID.fullmatch(cells[0])
            columns = "the number of a word and nine other columns, separated by tabs"
            expect(is_right, location, f"{columns}, as in CoNLL-U", repr(" ".join(cells)))
            if cells[0].isdecimal():
                words.append(cells[1])
                tags.append(cells[column])
                if cells[column] == _NONE and tag != "feats":
                    missing.append(location)
                elif not any_tags:
                    check_span_tag(cells[column], location, tag)
        if untagged and len(missing) == len(words):
            tags, missing = [], []
        advice = f"Choose another column: {', '.join(CONLLU_TAGS)}."
        expect(not missing, "".join(missing[:1]), f"a value of `{tag}`", "none", advice)
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


def span_columns(path: FilePath) -> List[int]:
    """
    The columns of a file, from 1, whose cells are all `is_span_tag`; -1 stands for the last one.
    Reads the file until none is left. Raises as `read_blocks` does.
    """
    found: Set[int] = set()
    is_first, conllu = True, is_conllu(path)
    for rows in read_blocks(path, (DOCUMENT_START,), *(("#", "\t") if conllu else (None,))):
        for cells in rows.cells:
            if cells[0] == DOCUMENT_START or (conllu and not cells[0].isdecimal()):
                continue
            columns = range(2, len(cells) + 1)
            tags = {column for column in columns if is_span_tag(cells[column - 1])}
            tags |= {-1} if len(cells) in tags else set()
            found, is_first = tags if is_first else found & tags, False
            if not found:
                return []
    return sorted(found)
