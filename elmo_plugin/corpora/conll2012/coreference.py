"""Documents with coreference, in the columns of CoNLL-2012."""

import re
from dataclasses import dataclass
from itertools import chain
from typing import Iterator, List, Optional, Sequence, Tuple

from elmo_plugin.corpora.columns import Rows, check_cells
from elmo_plugin.corpora.conll2012.rows import (
    MARKERS,
    MIN_COLUMNS,
    Bracket,
    bracket_spans,
    read_rows,
)
from elmo_plugin.util.errors import expect, unexpected
from elmo_plugin.util.text_files import FilePath

_BEGIN = re.compile(r"#begin\s+document\s+\(([^#].*|)\)(?:;\s*part\s+(\d+))?\s*;?")
_EXAMPLE = "#begin document (ID); part 000"
_CLUSTER = re.compile(r"(\(?)(\d+)(\)?)")
# Empty cells: a dash in OntoNotes, an underscore in LitBank.
_EMPTY = ("-", "_")
# The columns from the POS tag to the named entity, without annotation.
_EMPTY_COLUMNS = ("-", "*", "-", "-", "-", "-", "*")


@dataclass(frozen=True)
class Mention:
    #: Unique within a document part.
    cluster_id: int
    #: Positions of the first and last word in the sentence.
    start: int
    end: int


@dataclass(frozen=True)
class DocumentSentence:
    #: The line of the first word, counted from 1.
    line_number: int
    #: Not unescaped: brackets may be written `-LRB-`.
    words: Tuple[str, ...]
    #: One per word.
    speakers: Tuple[Optional[str], ...]
    #: Sorted by first word.
    mentions: Tuple[Mention, ...]


@dataclass(frozen=True)
class Document:
    """One part of a document. Coreference is annotated within a part only."""

    document_id: str
    #: 0 if the file has no part numbers.
    part: int
    #: Such as `#begin document (nw/1); part 000`. The reference scorer matches predicted and gold
    #: documents by this line.
    begin_line: str
    sentences: Tuple[DocumentSentence, ...]


def read_documents(path: FilePath) -> Iterator[Document]:
    """
    Streams the document parts of a corpus (see `read_rows`). RAM grows with the longest part. Only
    words (column 4), speakers (column 10) and coreference (the last cell of a line that is not
    empty) are read. LitBank's files are read, too: their last column is empty outside of mentions,
    and other empty cells hold `_`. Raises `ValueError` as `read_rows` does, and for sentences that
    are not between lines `#begin document` and `#end document`.
    """
    begin: Optional[Rows] = None
    sentences: List[DocumentSentence] = []
    for rows in read_rows(path):
        first, location = rows.cells[0][0], rows.location(0)
        expected = f"{_EXAMPLE} first" if begin is None else "#end document first"
        found = rows.cells[0][1] if first in MARKERS else "a sentence"
        expect((begin is None) == (first == "#begin"), location, expected, found)
        if begin is None:
            begin, sentences = rows, []
        elif first == "#end":
            expect(sentences, location, "a sentence in the document", "none", "Delete both lines.")
            yield Document(*_begun(begin), tuple(sentences))
            begin = None
        else:
            sentences.append(_sentence(rows))
    if begin is not None:
        expected = "#end document for the document begun here"
        raise unexpected(begin.location(0), expected, "the end of the file", "Was it cut off?")


def _begun(begin: Rows) -> Tuple[str, int, str]:
    line = begin.cells[0][1]
    match = _BEGIN.fullmatch(line.strip())
    if match is None:
        advice = "Put the name in brackets; it does not start with #, which starts a comment."
        raise unexpected(begin.location(0), _EXAMPLE, line, advice)
    return match[1], int(match[2] or 0), line


def _sentence(rows: Rows) -> DocumentSentence:
    rows.check_width(MIN_COLUMNS, exactly=False)
    spans = bracket_spans(rows, -1, _brackets, _EMPTY, "(3, 3), (3), (3|5) or -")
    # The reference scorer's order: at the same word, mentions of one word first, then file order.
    spans.sort(key=lambda span: (span.start, span.start < span.end, span.order))
    return DocumentSentence(
        line_number=rows.first_line,
        words=rows.column(3),
        speakers=tuple(None if cell in _EMPTY else cell for cell in rows.column(9)),
        mentions=tuple(Mention(int(span.label), span.start, span.end) for span in spans),
    )


def _brackets(cell: str) -> Optional[List[Bracket]]:
    """The brackets of a cell such as `(3|(5`, `3)` or `(3)`; `None` if it is malformed."""
    brackets: List[Bracket] = []
    for part in cell.split("|"):
        match = _CLUSTER.fullmatch(part)
        if match is None or not (match[1] or match[3]):
            return None
        cluster = str(int(match[2]))
        brackets += [(cluster, True)] if match[1] else []
        brackets += [(cluster, False)] if match[3] else []
    return brackets


def format_coreference(
    document_id: str,
    part: int,
    sentences: Sequence[Sequence[str]],
    mentions: Sequence[Sequence[Mention]],
    begin_line: Optional[str] = None,
) -> str:
    """
    Writes a document part for the reference scorer of the shared task and for `read_documents`.
    Raises `ValueError` as `check_cells` does. Columns between words and coreference are empty.
    Columns are separated by tabs: between spaces, the scorer would read a word such as `8)` as
    coreference.

    `mentions` has the mentions of each sentence, in any order. Mentions of one cluster must not
    cross: brackets are matched by cluster, so they would be read as other mentions. `begin_line` is
    the first line of the document in the gold file (default: as in OntoNotes). The scorer matches
    documents by it, and for the scorer `; part 0` differs from `; part 000`.
    """
    # A name that starts with `#` would be a comment.
    check_cells([document_id], "document names", reserved="#")
    check_cells(chain.from_iterable(sentences), "words")
    lines = [begin_line or f"#begin document ({document_id}); part {part:03d}"]
    for words, its_mentions in zip(sentences, mentions):
        cells = _cells(len(words), its_mentions)
        lines += (
            "\t".join([document_id, str(part), str(row), word, *_EMPTY_COLUMNS, cell])
            for row, (word, cell) in enumerate(zip(words, cells))
        )
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def _cells(num_words: int, mentions: Sequence[Mention]) -> List[str]:
    # Outer mentions before nested ones.
    mentions = sorted(mentions, key=lambda m: (m.start, -m.end, m.cluster_id))
    opening: List[List[str]] = [[] for _ in range(num_words)]
    whole: List[List[str]] = [[] for _ in range(num_words)]
    closing: List[List[str]] = [[] for _ in range(num_words)]
    for mention in mentions:
        if mention.start == mention.end:
            whole[mention.start].append(f"({mention.cluster_id})")
        else:
            opening[mention.start].append(f"({mention.cluster_id}")
            closing[mention.end].insert(0, f"{mention.cluster_id})")
    return ["|".join([*o, *w, *c]) or "-" for o, w, c in zip(opening, whole, closing)]
