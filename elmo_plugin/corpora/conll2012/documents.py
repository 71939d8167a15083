"""Reads the documents of a CoNLL-2012 file, with coreference."""

import os
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple, Union

from elmo_plugin.corpora.columns import Rows, check_width
from elmo_plugin.corpora.conll2012.brackets import cluster_spans
from elmo_plugin.corpora.conll2012.files import read_rows
from elmo_plugin.corpora.conll2012.propositions import MIN_COLUMNS

_BEGIN = re.compile(r"#begin\s+document\s+\((.*)\)(?:;\s*part\s+(\d+))?\s*;?")
# Empty cells: a dash in OntoNotes, an underscore in LitBank.
_EMPTY = ("-", "_")


@dataclass(frozen=True)
class Mention:
    """A mention of an entity in a sentence."""

    #: Unique within a document part.
    cluster_id: int
    #: Positions of the first and last word in the sentence.
    start: int
    end: int


@dataclass(frozen=True)
class DocumentSentence:
    """A sentence of a document."""

    #: The line of the first word, counted from 1.
    line_number: int
    #: As in the file: brackets may be written `-LRB-`.
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
    #: The line before the document, such as `#begin document (nw/1); part 000`. The reference
    #: scorer matches predicted and gold documents by this line.
    begin_line: str
    sentences: Tuple[DocumentSentence, ...]
    #: The file.
    path: str


def read_documents(path: Union[str, os.PathLike]) -> Iterator[Document]:
    """
    Streams the document parts of a corpus, see `read_rows`. Memory grows with the longest part.

    Only words (column 4), speakers (column 10) and coreference (the last cell of a line that is not
    empty) are read; other columns may hold anything. LitBank's files are read too: their last
    column is empty at words outside of mentions, and empty cells hold `_`.

    # Raises

    `ValueError`
        See `read_rows`. Each sentence must lie between the lines `#begin document` and `#end
        document`.
    """
    begin: Optional[Rows] = None
    sentences: List[DocumentSentence] = []
    for rows in read_rows(path):
        first = rows.cells[0][0]
        if first == "#begin":
            if begin is not None:
                raise _without_end(begin, f"#begin document at {rows.location(0)}")
            begin, sentences = rows, []
        elif begin is None:
            raise ValueError(
                f"{rows.location(0)}: expected a line such as #begin document (ID); part 000 "
                f"first, found {'#end document' if first == '#end' else 'a sentence'}. Put the "
                "line before the first sentence of each document."
            )
        elif first == "#end":
            if not sentences:
                raise ValueError(
                    f"{begin.location(0)}: expected a sentence in the document begun here, found "
                    f"#end document at line {rows.first_line}. Delete both lines."
                )
            yield Document(*_begun(begin), tuple(sentences), str(begin.path))
            begin = None
        else:
            sentences.append(_sentence(rows))
    if begin is not None:
        raise _without_end(begin, "the end of the file")


def _begun(begin: Rows) -> Tuple[str, int, str]:
    line = begin.cells[0][1]
    match = _BEGIN.fullmatch(line.strip())
    if match is None or match[1].startswith("#"):
        raise ValueError(
            f"{begin.location(0)}: expected #begin document (ID); part 000, found {line}. Put the "
            "name in brackets, and do not start it with #, which starts a comment."
        )
    return match[1], int(match[2] or 0), line


def _without_end(begin: Rows, found: str) -> ValueError:
    return ValueError(
        f"{begin.location(0)}: expected #end document for the document begun here, found {found}. "
        "Add the line after the document's last sentence, or copy the file again if it was cut off."
    )


def _sentence(rows: Rows) -> DocumentSentence:
    check_width(rows, MIN_COLUMNS, same=False)
    mentions = cluster_spans(rows, -1, _EMPTY)
    return DocumentSentence(
        line_number=rows.first_line,
        words=rows.column(3),
        speakers=tuple(None if cell in _EMPTY else cell for cell in rows.column(9)),
        mentions=tuple(Mention(cluster, start, end) for start, end, cluster in mentions),
    )
