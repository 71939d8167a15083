"""The columns of a CoNLL file in which brackets open and close over the words of a sentence."""

import logging
import re
from dataclasses import dataclass
from typing import List, Sequence, Tuple

from elmo_plugin.corpora.columns import Rows

__all__ = ["LabelledSpan", "bio_tags", "cluster_spans", "labelled_spans"]

logger = logging.getLogger(__name__)

_LABELLED = re.compile(r"((?:\([^()*]+)*)\*?(\)*)")
_CLUSTER = re.compile(r"(\(?)(\d+)(\)?)")


@dataclass(frozen=True)
class LabelledSpan:
    """
    What stands between an opening bracket and the one that closes it.

    # Parameters

    label : `str`
    start : `int`
    end : `int`
        Position of the last word.
    depth : `int`
        How many brackets of the column enclose it.
    """

    label: str
    start: int
    end: int
    depth: int


def labelled_spans(rows: Rows, column: int, kind: str) -> List[LabelledSpan]:
    """
    The spans of a column such as `(ARG0*`, `*`, `*)`; a `-` says as little as a `*`.

    # Parameters

    rows : `Rows`
        The sentence.
    column : `int`
    kind : `str`
        What the column holds, for messages: `argument`, `entity`.

    # Returns

    `List[LabelledSpan]`
        In the order in which they close.

    # Raises

    `ValueError`
        If a cell is no bracket cell, or a bracket lacks its partner.
    """
    spans: List[LabelledSpan] = []
    opened: List[Tuple[str, int]] = []
    for row, cell in enumerate(rows.column(column)):
        if cell in ("*", "-"):
            continue
        match = _LABELLED.fullmatch(cell)
        if match is None:
            raise ValueError(
                f"{rows.place(row)}: expected an {kind} bracket such as (LABEL*, * or *) in "
                f"column {column + 1}, found {cell}"
            )
        opened.extend((label, row) for label in match[1].split("(")[1:])
        for _ in match[2]:
            if not opened:
                raise _nothing_open(rows, row, column, kind, cell)
            label, start = opened.pop()
            spans.append(LabelledSpan(label, start, row, depth=len(opened)))
    if opened:
        raise _left_open(rows, opened[-1][1], column, kind, opened[-1][0])
    return spans


def bio_tags(rows: Rows, spans: Sequence[LabelledSpan], kind: str) -> Tuple[str, ...]:
    """
    Writes spans as BIO tags. Of nested spans the outer one is kept, with a warning: one tag per
    word cannot say both.

    # Parameters

    rows : `Rows`
        The sentence.
    spans : `Sequence[LabelledSpan]`
        As `labelled_spans` gives them.
    kind : `str`
        What they are, for the warning.

    # Returns

    `Tuple[str, ...]`
        One tag per word.
    """
    tags = ["O"] * len(rows.cells)
    for span in spans:
        if span.depth:
            logger.warning(
                "%s: the %s %s lies inside another one and is left out",
                rows.place(span.start),
                kind,
                span.label,
            )
            continue
        tags[span.start : span.end + 1] = [f"I-{span.label}"] * (span.end + 1 - span.start)
        tags[span.start] = f"B-{span.label}"
    return tuple(tags)


def cluster_spans(
    rows: Rows, column: int, nothing: Sequence[str] = ("-",)
) -> List[Tuple[int, int, int]]:
    """
    The spans of a coreference column: `(3|(5`, `3)`, `(3)`, `-`. Of two mentions of one cluster,
    the one opened last closes first.

    # Parameters

    rows : `Rows`
        The sentence.
    column : `int`
    nothing : `Sequence[str]`, optional (default = `("-",)`)
        What a cell without mentions holds.

    # Returns

    `List[Tuple[int, int, int]]`
        First word, last word and cluster of each mention, by first word. Of those that begin at
        the same word, the single word comes first, then the order of the file: so the reference
        scorer meets them.

    # Raises

    `ValueError`
        If a cell is no coreference cell, or a bracket lacks its partner.
    """
    spans: List[Tuple[int, bool, int, int, int]] = []
    opened: List[Tuple[int, int, int]] = []
    for row, cell in enumerate(rows.column(column)):
        if cell in nothing:
            continue
        for number, part in enumerate(cell.split("|")):
            match = _CLUSTER.fullmatch(part)
            if match is None or not (match[1] or match[3]):
                raise ValueError(
                    f"{rows.place(row)}: expected coreference such as (3, 3), (3) or (3|5) in the "
                    f"last column, found {cell}. Where there is none, put a dash."
                )
            cluster = int(match[2])
            if match[1]:
                opened.append((cluster, row, number))
            if match[3]:
                matching = [entry for entry in opened if entry[0] == cluster]
                if not matching:
                    raise _nothing_open(rows, row, column, "coreference", part)
                opened.remove(matching[-1])
                _, start, opened_as = matching[-1]
                spans.append((start, start < row, opened_as, row, cluster))
    if opened:
        raise _left_open(rows, opened[-1][1], column, "coreference", str(opened[-1][0]))
    return [(start, end, cluster) for start, _, _, end, cluster in sorted(spans)]


def _nothing_open(rows: Rows, row: int, column: int, kind: str, cell: str) -> ValueError:
    column = column % len(rows.cells[row]) + 1
    return ValueError(
        f"{rows.place(row)}: expected an open {kind} bracket in column {column} for {cell} to "
        "close, found none. Open it in the same sentence or delete it."
    )


def _left_open(rows: Rows, row: int, column: int, kind: str, label: str) -> ValueError:
    column = column % len(rows.cells[row]) + 1
    return ValueError(
        f"{rows.place(row)}: expected the {kind} bracket ({label} of column {column} to close "
        f"within its sentence, found the end of the sentence at line "
        f"{rows.first_line + len(rows.cells) - 1}. Close it before or delete it: none reaches into "
        "the next sentence."
    )
