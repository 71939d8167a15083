"""Columns of CoNLL-2012 in which brackets mark spans of words."""

import logging
import re
from typing import List, Sequence, Tuple

from elmo_plugin.corpora.columns import Rows
from elmo_plugin.corpora.tag_spans import TagSpan, bio_tags

logger = logging.getLogger(__name__)

_ARGUMENT = re.compile(r"((?:\([^()*]+)*)\*?(\)*)")
_CLUSTER = re.compile(r"(\(?)(\d+)(\)?)")


def argument_spans(rows: Rows, column: int) -> List[Tuple[TagSpan, int]]:
    """
    The spans of an argument column, whose cells are such as `(ARG0*`, `*`, `*)`, or `-` for `*`.

    # Returns

    `List[Tuple[TagSpan, int]]`
        Each span, and the number of brackets that enclose it, in the order of the closing brackets.

    # Raises

    `ValueError`
        If a cell is malformed, or a bracket is not opened or closed within the sentence.
    """
    spans: List[Tuple[TagSpan, int]] = []
    opened: List[Tuple[str, int]] = []
    for row, cell in enumerate(rows.column(column)):
        if cell in ("*", "-"):
            continue
        match = _ARGUMENT.fullmatch(cell)
        if match is None:
            raise ValueError(
                f"{rows.location(row)}: expected an argument bracket such as (LABEL*, * or *) in "
                f"column {column + 1}, found {cell}"
            )
        opened.extend((label, row) for label in match[1].split("(")[1:])
        for _ in match[2]:
            if not opened:
                raise _not_opened(rows, row, column, "argument", cell)
            label, start = opened.pop()
            spans.append((TagSpan(label, start, row), len(opened)))
    if opened:
        raise _not_closed(rows, opened[-1][1], column, "argument", opened[-1][0])
    return spans


def argument_tags(rows: Rows, spans: Sequence[Tuple[TagSpan, int]]) -> Tuple[str, ...]:
    """
    One BIO tag per word, from `argument_spans`. BIO tags cannot express nested spans: the outer
    span is kept, with a warning.
    """
    for span, depth in spans:
        if depth:
            logger.warning(
                "%s: the argument %s lies inside another one and is left out",
                rows.location(span.start),
                span.label,
            )
    outer = [span for span, depth in spans if not depth]
    return tuple(bio_tags(outer, len(rows.cells)))


def cluster_spans(rows: Rows, column: int, empty: Sequence[str]) -> List[Tuple[int, int, int]]:
    """
    The mentions of a coreference column, whose cells are such as `(3|(5`, `3)`, `(3)`, or one of
    `empty`. If two mentions of a cluster are open, the last one opened closes first.

    # Returns

    `List[Tuple[int, int, int]]`
        First word, last word and cluster of each mention, sorted by first word. Of mentions with
        the same first word, those of one word come first, the others in the order of the file, as
        in the reference scorer.

    # Raises

    `ValueError`
        If a cell is malformed, or a bracket is not opened or closed within the sentence.
    """
    spans: List[Tuple[int, bool, int, int, int]] = []
    opened: List[Tuple[int, int, int]] = []
    for row, cell in enumerate(rows.column(column)):
        if cell in empty:
            continue
        for number, part in enumerate(cell.split("|")):
            match = _CLUSTER.fullmatch(part)
            if match is None or not (match[1] or match[3]):
                raise ValueError(
                    f"{rows.location(row)}: expected coreference such as (3, 3), (3) or (3|5) in "
                    f"the last column, found {cell}. Write a dash if there is none."
                )
            cluster = int(match[2])
            if match[1]:
                opened.append((cluster, row, number))
            if match[3]:
                matching = [entry for entry in opened if entry[0] == cluster]
                if not matching:
                    raise _not_opened(rows, row, column, "coreference", part)
                opened.remove(matching[-1])
                _, start, opened_as = matching[-1]
                spans.append((start, start < row, opened_as, row, cluster))
    if opened:
        raise _not_closed(rows, opened[-1][1], column, "coreference", str(opened[-1][0]))
    return [(start, end, cluster) for start, _, _, end, cluster in sorted(spans)]


def _not_opened(rows: Rows, row: int, column: int, kind: str, cell: str) -> ValueError:
    column = column % len(rows.cells[row]) + 1
    return ValueError(
        f"{rows.location(row)}: expected an open {kind} bracket in column {column} for {cell} to "
        "close, found none. Open it in the same sentence or delete it."
    )


def _not_closed(rows: Rows, row: int, column: int, kind: str, label: str) -> ValueError:
    column = column % len(rows.cells[row]) + 1
    return ValueError(
        f"{rows.location(row)}: expected the {kind} bracket ({label} of column {column} to close "
        f"within its sentence, found the end of the sentence at line "
        f"{rows.first_line + len(rows.cells) - 1}. Close it or delete it."
    )
