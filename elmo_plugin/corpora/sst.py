"""The Stanford Sentiment Treebank (Socher et al. 2013): one labelled tree per line."""

import os
import re
from dataclasses import dataclass
from typing import Iterator, List, Tuple, Union

from elmo_plugin.corpora.penn_treebank import plain_word
from elmo_plugin.util.text_files import numbered_lines

# Words may contain a no-break space: `2 1/2` is one word.
_PIECE = re.compile(r"\([ \t]*([^() \t]*)|\)|[^() \t]+")
_LABELS = ("0", "1", "2", "3", "4")
# The kinds of pieces (brackets and words) that may come next.
_AT_START = ("(",)
_AFTER_LABEL = ("(", "word")
_AFTER_WORD = (")",)
_AFTER_PHRASE = ("(", ")")
_AT_END = ("the end of the line",)
_EXAMPLE = "(3 (2 A) (4 triumph))"


@dataclass(frozen=True)
class Phrase:
    """A labelled constituent."""

    #: Positions of the first word, and of the word after the last.
    start: int
    end: int
    #: From 0 (very negative) to 4 (very positive).
    label: int


@dataclass(frozen=True)
class Tree:
    """A sentence and its constituents."""

    #: Without the treebank's escapes, see `plain_word`.
    words: Tuple[str, ...]
    #: All constituents in the order of their opening brackets: the whole sentence is the first.
    phrases: Tuple[Phrase, ...]


def read_trees(path: Union[str, os.PathLike]) -> Iterator[Tree]:
    """
    Streams the trees of a file (see `find_file`). Empty lines are skipped; memory grows with the
    longest line.

    # Raises

    `ValueError`
        If a line is not exactly one tree, with line and column, or the file holds no trees.
    """
    is_empty = True
    for line_number, line in numbered_lines(path):
        if line.strip():
            is_empty = False
            yield _parsed(line, f"{path}:{line_number}")
    if is_empty:
        raise ValueError(f"{path}: expected one tree per line like {_EXAMPLE}, found an empty file")


def _parsed(line: str, location: str) -> Tree:
    """Uses a stack: trees may be deeper than Python's recursion limit."""
    words: List[str] = []
    starts: List[int] = []
    ends: List[int] = []
    labels: List[int] = []
    open_phrases: List[int] = []
    legal: Tuple[str, ...] = _AT_START
    for match in _PIECE.finditer(line):
        piece = match.group()[0] if match.group()[0] in "()" else "word"
        if piece not in legal:
            raise _error(location, match.start(), " or ".join(legal), repr(match.group()))
        if piece == "(":
            labels.append(_label(match, location))
            open_phrases.append(len(starts))
            starts.append(len(words))
            ends.append(-1)
            legal = _AFTER_LABEL
        elif piece == "word":
            words.append(plain_word(match.group()))
            legal = _AFTER_WORD
        else:
            ends[open_phrases.pop()] = len(words)
            legal = _AFTER_PHRASE if open_phrases else _AT_END
    if legal is not _AT_END:
        missing = " or ".join(legal) if legal is _AFTER_LABEL else f"{len(open_phrases)} more )"
        raise _error(location, len(line), missing, "the end of the line")
    return Tree(tuple(words), tuple(map(Phrase, starts, ends, labels)))


def _label(opening: "re.Match[str]", location: str) -> int:
    label = opening.group(1)
    if label not in _LABELS:
        raise _error(
            location, opening.start(1), "a label from 0 to 4", repr(label) if label else "nothing"
        )
    return int(label)


def _error(location: str, offset: int, expected: str, found: str) -> ValueError:
    return ValueError(
        f"{location}:{offset + 1}: expected {expected}, found {found}. A tree is one line like "
        f"{_EXAMPLE}; a bracket that is a word is -LRB- or -RRB-."
    )
