"""Predicates and their arguments, in the columns of CoNLL-2012 (read) and CoNLL-2005 (written)."""

import os
from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple, Union

from elmo_plugin.corpora.columns import Rows, check_width
from elmo_plugin.corpora.conll2012.brackets import argument_spans, argument_tags
from elmo_plugin.corpora.conll2012.files import MARKERS, read_rows
from elmo_plugin.corpora.tag_spans import tags_to_spans

MIN_COLUMNS = 12
_FIRST_FRAME = 11


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
    """A sentence and its predicates."""

    #: `file:line` of the first word.
    location: str
    #: As in the file: brackets may be written `-LRB-`.
    words: Tuple[str, ...]
    #: One entry per word. Framesets are those of PropBank, such as `01`.
    lemmas: Tuple[Optional[str], ...]
    framesets: Tuple[Optional[str], ...]
    #: In the order of the file's predicate columns; empty if it has none.
    frames: Tuple[Frame, ...]


def read_sentences(path: Union[str, os.PathLike]) -> Iterator[Sentence]:
    """
    Streams the sentences of a corpus (see `read_rows`), with or without `#begin document` lines.
    Words, lemmas, framesets and the predicate columns are read; other columns may hold anything.
    Memory grows with the longest sentence.

    # Raises

    `ValueError`
        See `read_rows`.
    """
    for rows in read_rows(path):
        if rows.cells[0][0] in MARKERS:
            continue
        check_width(rows, MIN_COLUMNS)
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
    spans = argument_spans(rows, column)
    verbs = [span.start for span, _ in spans if span.label == "V"]
    if not verbs:
        # A few predicates of OntoNotes have no V; columns are in the order of the framesets.
        framesets = enumerate(rows.column(7))
        verbs = [row for row, frameset in framesets if frameset != "-"][number : number + 1]
    if not verbs:
        raise ValueError(
            f"{rows.location(0)}: expected (V*) in column {column + 1} or a frameset in column 8 "
            f"for predicate {number + 1}, found neither. Mark the predicate, or remove the column."
        )
    index = min(verbs)
    (lemma,) = _optional(rows.cells[index][6:7])
    return Frame(index, lemma, argument_tags(rows, spans))


def format_propositions(
    num_tokens: int, predicates: Sequence[Tuple[int, str]], tags: Sequence[Sequence[str]]
) -> str:
    """
    Writes the propositions of a sentence as the CoNLL-2005 scorer `srl-eval.pl` reads them: one
    line per word with the predicate's lemma or `-`, then a bracket column per predicate.

    # Parameters

    num_tokens : `int`
    predicates : `Sequence[Tuple[int, str]]`
        Position and lemma of each predicate, in any order.
    tags : `Sequence[Sequence[str]]`
        The BIO tags of each predicate. An `I-X` that does not follow an `X` starts a new span.

    # Returns

    `str`
        The lines, the last one empty.

    # Raises

    `ValueError`
        If the format cannot represent the propositions: two predicates at one word, a predicate
        outside the sentence, or a lemma that is `-`, empty or contains spaces.
    """
    lemmas = dict(predicates)
    if len(lemmas) != len(predicates) or not all(0 <= index < num_tokens for index in lemmas):
        raise ValueError(
            f"expected predicates at different words below {num_tokens}, found them at "
            f"{[index for index, _ in predicates]}"
        )
    unusable = [lemma for lemma in lemmas.values() if lemma == "-" or lemma.split() != [lemma]]
    if unusable:
        raise ValueError(f"expected lemmas without spaces, and not '-', found {unusable}")
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
