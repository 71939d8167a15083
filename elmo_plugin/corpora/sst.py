"""The Stanford Sentiment Treebank (Socher et al. 2013): one labelled tree per line."""

import re
from dataclasses import dataclass
from typing import Iterator, List, Tuple

from elmo_plugin.corpora.tokenizer import plain_word
from elmo_plugin.util.errors import expect, unexpected
from elmo_plugin.util.text_files import FilePath, numbered_lines

# Words may contain a no-break space: `2 1/2` is one word.
_PIECE = re.compile(r"[()]|[^() \t]+")
_LABEL, _WORD, _END = "a label from 0 to 4", "a word", "the end of the line"
_EXAMPLE = "(3 (2 A) (4 triumph))"


@dataclass(frozen=True)
class Phrase:
    """A labelled constituent."""

    #: Positions of the first word and of the word after the last.
    start: int
    end: int
    #: From 0 (very negative) to 4 (very positive).
    label: int


@dataclass(frozen=True)
class Tree:
    """A sentence and its constituents."""

    #: Without the treebank's escapes, see `plain_word`.
    words: Tuple[str, ...]
    #: All constituents, in the order of their opening brackets. The first is the whole sentence.
    phrases: Tuple[Phrase, ...]


def read_trees(path: FilePath) -> Iterator[Tree]:
    """
    Streams the trees of a file; empty lines are skipped. RAM grows with the longest line. Raises
    `ValueError`, with line and column, if a line is not exactly one tree.
    """
    is_empty = True
    for line_number, line in numbered_lines(path):
        if line.strip():
            is_empty = False
            yield _parsed(line, f"{path}:{line_number}")
    expect(not is_empty, path, f"one tree per line like {_EXAMPLE}", "an empty file")


def _parsed(line: str, location: str) -> Tree:
    """Uses a stack: a tree may be deeper than Python's recursion limit."""
    words: List[str] = []
    # Start, end and label.
    phrases: List[List[int]] = []
    opened: List[List[int]] = []
    # The kinds of pieces that may come next.
    legal: Tuple[str, ...] = ("(",)
    pieces = [(match.start(), match.group()) for match in _PIECE.finditer(line)]
    for offset, piece in [*pieces, (len(line), _END)]:
        kind = piece if piece in ("(", ")", _END) else _WORD
        if legal == (_LABEL,) and piece in ("0", "1", "2", "3", "4"):
            kind = _LABEL
        if kind not in legal:
            found = piece if kind == _END else repr(piece)
            advice = f"A tree is one line like {_EXAMPLE}; a word ( is -LRB-, a word ) is -RRB-."
            if not phrases:
                advice += " Tables have names that end in .csv, .tsv or .jsonl."
            raise unexpected(f"{location}:{offset + 1}", " or ".join(legal), found, advice)
        if kind == "(":
            opened.append([len(words), -1, -1])
            phrases.append(opened[-1])
            legal = (_LABEL,)
        elif kind == _LABEL:
            opened[-1][2] = int(piece)
            legal = ("(", _WORD)
        elif kind == _WORD:
            words.append(plain_word(piece))
            legal = (")",)
        elif kind == ")":
            opened.pop()[1] = len(words)
            legal = ("(", ")") if opened else (_END,)
    return Tree(tuple(words), tuple(Phrase(*phrase) for phrase in phrases))
