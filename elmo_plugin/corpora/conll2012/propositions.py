"""Predicates and arguments: reads the columns of CoNLL-2012, writes the ones of CoNLL-2005."""

import logging
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple

from elmo_plugin.corpora.columns import Rows
from elmo_plugin.corpora.conll2012.rows import (
    MARKERS,
    MIN_COLUMNS,
    Bracket,
    bracket_spans,
    read_rows,
)
from elmo_plugin.corpora.tag_spans import TagSpan, bio_tags, tags_to_spans
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath

logger = logging.getLogger(__name__)

_FIRST_FRAME = 11
_ARGUMENT = re.compile(r"((?:\([^()*]+)*)\*?(\)*)")


@dataclass(frozen=True)
class Frame:
    """One predicate and its arguments."""

    #: Position of the predicate's first word.
    predicate_index: int
    lemma: Optional[str]
    #: One BIO tag per word: `B-ARG0`, `I-ARG0`, `B-V`, `O`.
    tags: Tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    #: `file:line` of the first word.
    location: str
    #: Not unescaped: brackets may be written `-LRB-`.
    words: Tuple[str, ...]
    #: One entry per word. Framesets are from PropBank, such as `01`.
    lemmas: Tuple[Optional[str], ...]
    framesets: Tuple[Optional[str], ...]
    #: In the order of the file's predicate columns; empty if it has none.
    frames: Tuple[Frame, ...]


def read_sentences(path: FilePath) -> Iterator[Sentence]:
    """
    Streams the sentences of a corpus, with or without `#begin document` lines. Only words, lemmas,
    framesets and predicate columns are read. RAM grows with the longest sentence. For files and
    exceptions see `read_rows`.
    """
    for rows in read_rows(path):
        if rows.cells[0][0] in MARKERS:
            continue
        rows.check_width(MIN_COLUMNS, exactly=False)
        rows.check_width(len(rows.cells[0]))
        num_frames = len(rows.cells[0]) - MIN_COLUMNS
        yield Sentence(
            location=rows.location(0),
            words=rows.column(3),
            lemmas=_optional(rows.column(6)),
            framesets=_optional(rows.column(7)),
            frames=tuple(_frame(rows, number) for number in range(num_frames)),
        )


def _optional(column: Sequence[str]) -> Tuple[Optional[str], ...]:
    return tuple(None if cell == "-" else cell for cell in column)


def _frame(rows: Rows, number: int) -> Frame:
    column = _FIRST_FRAME + number
    spans = bracket_spans(rows, column, _brackets, ("*", "-"), "(LABEL*, * or *)")
    verbs = [span.start for span in spans if span.label == "V"]
    if not verbs:
        # A few predicates of OntoNotes have no V. Columns are in the order of the framesets.
        framesets = enumerate(rows.column(7))
        verbs = [row for row, frameset in framesets if frameset != "-"][number : number + 1]
    expected = f"(V*) in column {column + 1} or a frameset in column 8 for predicate {number + 1}"
    expect(verbs, rows.location(0), expected, "neither", "Mark it, or remove the column.")
    index = min(verbs)
    (lemma,) = _optional(rows.cells[index][6:7])
    # BIO tags cannot express nested spans.
    for span in spans:
        if span.depth:
            left_out = "%s: the argument %s lies inside another one and is left out"
            logger.warning(left_out, rows.location(span.start), span.label)
    outer = [TagSpan(span.label, span.start, span.end) for span in spans if not span.depth]
    return Frame(index, lemma, tuple(bio_tags(outer, len(rows.cells))))


def _brackets(cell: str) -> Optional[List[Bracket]]:
    """The brackets of a cell such as `(ARG0*`, `(ARG0(V*)` or `*)`; `None` if it is malformed."""
    match = _ARGUMENT.fullmatch(cell)
    if match is None:
        return None
    opening = [(label, True) for label in match[1].split("(")[1:]]
    return opening + [("", False)] * len(match[2])


def format_propositions(
    num_tokens: int,
    predicates: Sequence[Tuple[int, str]],
    tags: Sequence[Sequence[str]],
    location: str = "",
) -> str:
    """
    Writes the propositions of a sentence as the CoNLL-2005 scorer `srl-eval.pl` reads them: per
    word a line with the predicate's lemma or `-`, then a bracket column per predicate. The last
    line is empty.

    `predicates` are position and lemma of each predicate, in any order, and `tags` its BIO tags. An
    `I-X` that does not follow an `X` starts a new span. `location` is for error messages. Raises
    `ValueError` if the format cannot represent the propositions: two predicates are at one word, a
    predicate is outside the sentence, or a lemma is `-`, empty or contains spaces.
    """
    lemmas, positions = dict(predicates), [index for index, _ in predicates]
    is_right = len(lemmas) == len(predicates) and all(0 <= p < num_tokens for p in positions)
    expect(is_right, location, f"predicates at different words below {num_tokens}", positions)
    for lemma in lemmas.values():
        is_right = lemma != "-" and lemma.split() == [lemma]
        expect(is_right, location, "lemmas without spaces, and not '-'", repr(lemma))
    # The scorer assigns the k-th column to the k-th line with a lemma.
    order = sorted(range(len(predicates)), key=lambda column: predicates[column][0])
    columns = [_proposition_column(tags[column]) for column in order]
    lines = (
        " ".join([lemmas.get(row, "-"), *(column[row] for column in columns)])
        for row in range(num_tokens)
    )
    return "\n".join([*lines, "", ""])


def _proposition_column(tags: Sequence[str]) -> List[str]:
    cells = ["*"] * len(tags)
    for span in tags_to_spans(tags):
        cells[span.start] = f"({span.label}*"
        cells[span.end] += ")"
    return cells
