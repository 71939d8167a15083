"""Sentences of words with one tag each: CoNLL-U and plain columns."""

import os
from dataclasses import dataclass
from typing import Any, Iterator, List, Tuple, Union

from elmo_plugin.corpora.columns import check_width, read_blocks
from elmo_plugin.util.optional import optional_package
from elmo_plugin.util.text_files import numbered_lines

# The columns of CoNLL-U that hold one label of a word.
CONLLU_TAGS = ("upos", "xpos", "deprel")


@dataclass(frozen=True)
class TaggedSentence:
    """Words and their tags, of equal length."""

    words: Tuple[str, ...]
    tags: Tuple[str, ...]


def read_conllu(path: Union[str, os.PathLike], tag: str = "upos") -> Iterator[TaggedSentence]:
    """
    Streams the sentences of a file in the format of
    [Universal Dependencies](https://universaldependencies.org/format.html), parsed by the library
    `conllu`. Only words are read: lines of a range (`2-3`) and empty nodes (`8.1`) are skipped.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`.
    tag : `str`, optional (default = `"upos"`)
        One of `CONLLU_TAGS`.

    # Raises

    `ImportError`
        If `conllu` is not installed.
    `ValueError`
        If a sentence is not CoNLL-U, a word is empty or has no such tag, with the first line of the
        sentence; if the file holds no sentences, or is not UTF-8.
    """
    conllu = optional_package("conllu", "Reading CoNLL-U, unlike plain columns,")
    is_empty = True
    for first_line, block in _paragraphs(path):
        try:
            parsed = conllu.parse(block)
        except (conllu.exceptions.ParseException, IndexError) as error:
            raise ValueError(
                f"{path}:{first_line}: expected a sentence in CoNLL-U, ten columns separated by "
                f"tabs, found {' '.join(str(error).split())[:200]}"
            ) from error
        for sentence in parsed:
            # The id of a range or of an empty node is a tuple.
            words = [word for word in sentence if isinstance(word["id"], int)]
            if words:
                location = f"{path}:{first_line}"
                if not all(word["form"] for word in words):
                    raise ValueError(f"{location}: expected words in column 2, found an empty one.")
                is_empty = False
                tags = tuple(_tag(word, tag, location) for word in words)
                yield TaggedSentence(tuple(word["form"] for word in words), tags)
    if is_empty:
        raise ValueError(
            f"{path}: expected sentences in CoNLL-U, found none. Name another file, or write them "
            "to this one."
        )


def read_tag_columns(
    path: Union[str, os.PathLike], word_column: int, tag_column: int
) -> Iterator[TaggedSentence]:
    """
    Streams the sentences of a file with one word per line, columns separated by spaces or tabs, and
    an empty line between sentences. Lines that begin with `-DOCSTART-` are skipped.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`.
    word_column, tag_column : `int`
        Counted from 1; negative numbers count from the right.

    # Raises

    `ValueError`
        If a column is 0, a line has too few columns (the message names it), or the file holds no
        sentences.
    """
    if word_column == 0 or tag_column == 0:
        raise ValueError("Columns are counted from 1, or from the right from -1; found column 0.")
    # A word may begin with `#`.
    for rows in read_blocks(path, markers=("-DOCSTART-",), comment=None):
        if rows.cells[0][0] != "-DOCSTART-":
            check_width(rows, max(abs(word_column), abs(tag_column)), same=False)
            words, tags = (rows.column(c - (c > 0)) for c in (word_column, tag_column))
            yield TaggedSentence(words, tags)


def _paragraphs(path: Union[str, os.PathLike]) -> Iterator[Tuple[int, str]]:
    """The number of the first line and the text of each block of lines that are not empty."""
    lines: List[str] = []
    number = 0
    for number, line in numbered_lines(path):
        if line.strip():
            lines.append(line)
        elif lines:
            yield number - len(lines), "\n".join(lines)
            lines = []
    if lines:
        yield number + 1 - len(lines), "\n".join(lines)


def _tag(word: Any, tag: str, location: str) -> str:
    found = word.get(tag)
    if found in (None, "_"):
        raise ValueError(
            f"{location}: expected a value of `{tag}` for each word, found none for "
            f"{word['form']!r}. Choose another column: {', '.join(CONLLU_TAGS)}."
        )
    return str(found)
