"""Reads a CoNLL-2012 file as sentences, every column of them."""

import os
from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple, Union

from elmo_plugin.corpora.columns import Rows, check_width, read_blocks
from elmo_plugin.corpora.conll2012.brackets import bio_tags, cluster_spans, labelled_spans

__all__ = ["Frame", "Mention", "Sentence", "read_sentences"]

MARKERS = ("#begin", "#end")
MIN_COLUMNS = 12
_FIRST_FRAME = 11


@dataclass(frozen=True)
class Frame:
    """
    One predicate and its arguments.

    # Parameters

    predicate_index : `int`
        Position of the predicate's first word.
    lemma : `Optional[str]`
        The predicate's lemma, where the file gives one.
    frameset : `Optional[str]`
        The predicate's PropBank frameset, such as `01`.
    tags : `Tuple[str, ...]`
        One BIO tag per word: `B-ARG0`, `I-ARG0`, `B-V`, `O`.
    """

    predicate_index: int
    lemma: Optional[str]
    frameset: Optional[str]
    tags: Tuple[str, ...]


@dataclass(frozen=True)
class Mention:
    """
    A span of a sentence that refers to something.

    # Parameters

    cluster_id : `int`
        What it refers to; unique within a document part.
    start : `int`
        Position of its first word in the sentence.
    end : `int`
        Position of its last word in the sentence.
    """

    cluster_id: int
    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """
    One sentence; every field in the plural but `frames` and `mentions` has one entry per word.

    # Parameters

    document_id : `str`
    part : `int`
    line_number : `int`
        The line of the file that holds the first word, counted from 1.
    words : `Tuple[str, ...]`
        As in the file: brackets may be written `-LRB-`.
    pos_tags : `Tuple[str, ...]`
    parse_bits : `Tuple[str, ...]`
        Each word's piece of the constituent tree, its leaf written `*`.
    lemmas : `Tuple[Optional[str], ...]`
        Given for predicates, and in OntoNotes for some other words.
    framesets : `Tuple[Optional[str], ...]`
    word_senses : `Tuple[Optional[str], ...]`
    speakers : `Tuple[Optional[str], ...]`
    named_entities : `Tuple[str, ...]`
        BIO tags.
    frames : `Tuple[Frame, ...]`
        In the order of the file's predicate columns; empty where it has none.
    mentions : `Tuple[Mention, ...]`
        By first word; empty where the text is not annotated.
    """

    document_id: str
    part: int
    line_number: int
    words: Tuple[str, ...]
    pos_tags: Tuple[str, ...]
    parse_bits: Tuple[str, ...]
    lemmas: Tuple[Optional[str], ...]
    framesets: Tuple[Optional[str], ...]
    word_senses: Tuple[Optional[str], ...]
    speakers: Tuple[Optional[str], ...]
    named_entities: Tuple[str, ...]
    frames: Tuple[Frame, ...]
    mentions: Tuple[Mention, ...]


def read_sentences(path: Union[str, os.PathLike]) -> Iterator[Sentence]:
    """
    Streams the sentences of a file, with or without `#begin document` lines. Memory grows with
    the longest sentence.

    # Parameters

    path : `Union[str, os.PathLike]`
        A plain or gzip file, local or a URL.

    # Returns

    `Iterator[Sentence]`

    # Raises

    `ValueError`
        If the file is malformed, with the line, or holds no sentences.
    """
    for rows in read_blocks(path, MARKERS):
        if rows.cells[0][0] not in MARKERS:
            yield _sentence(rows)


def _sentence(rows: Rows) -> Sentence:
    check_width(rows, MIN_COLUMNS)
    document_id, part = rows.cells[0][:2]
    if not part.isdecimal():
        raise ValueError(f"{rows.place(0)}: expected a part number in column 2, found {part}")
    entities = labelled_spans(rows, 10, "entity")
    mentions = cluster_spans(rows, -1)
    num_frames = len(rows.cells[0]) - MIN_COLUMNS
    return Sentence(
        document_id=document_id,
        part=int(part),
        line_number=rows.first_line,
        words=rows.column(3),
        pos_tags=rows.column(4),
        parse_bits=rows.column(5),
        lemmas=_optional(rows.column(6)),
        framesets=_optional(rows.column(7)),
        word_senses=_optional(rows.column(8)),
        speakers=_optional(rows.column(9)),
        named_entities=bio_tags(rows, entities, "entity"),
        frames=tuple(_frame(rows, number) for number in range(num_frames)),
        mentions=tuple(Mention(cluster, start, end) for start, end, cluster in mentions),
    )


def _optional(column: Sequence[str]) -> Tuple[Optional[str], ...]:
    return tuple(None if cell == "-" else cell for cell in column)


def _frame(rows: Rows, number: int) -> Frame:
    column = _FIRST_FRAME + number
    spans = labelled_spans(rows, column, "argument")
    verbs = [span.start for span in spans if span.label == "V"]
    if not verbs:
        # OntoNotes lost the V of a few predicates; columns follow the order of the framesets.
        framesets = enumerate(rows.column(7))
        verbs = [row for row, frameset in framesets if frameset != "-"][number : number + 1]
    if not verbs:
        raise ValueError(
            f"{rows.place(0)}: expected (V*) in column {column + 1} or a frameset in column 8 "
            f"for predicate {number + 1}, found neither"
        )
    index = min(verbs)
    lemma, frameset = _optional(rows.cells[index][6:8])
    return Frame(index, lemma, frameset, bio_tags(rows, spans, "argument"))
