"""Reads a CoNLL-2012 file as documents: the columns that coreference needs, and no others."""

import os
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple, Union

from elmo_plugin.corpora.columns import Rows, check_width, read_blocks
from elmo_plugin.corpora.conll2012.brackets import cluster_spans
from elmo_plugin.corpora.conll2012.reader import MARKERS, MIN_COLUMNS, Mention

__all__ = ["Document", "DocumentSentence", "read_documents"]

_BEGIN = re.compile(r"#begin\s+document\s+\((.*)\)(?:;\s*part\s+(\d+))?\s*;?")
# What a cell that says nothing holds: in OntoNotes a dash, in LitBank an underscore.
_NOTHING = ("-", "_")


@dataclass(frozen=True)
class DocumentSentence:
    """
    One sentence of a document.

    # Parameters

    line_number : `int`
        The line of the file that holds the first word, counted from 1.
    words : `Tuple[str, ...]`
        As in the file: brackets may be written `-LRB-`.
    speakers : `Tuple[Optional[str], ...]`
        One per word.
    mentions : `Tuple[Mention, ...]`
        By first word; empty where the text is not annotated.
    """

    line_number: int
    words: Tuple[str, ...]
    speakers: Tuple[Optional[str], ...]
    mentions: Tuple[Mention, ...]


@dataclass(frozen=True)
class Document:
    """
    One part of a document: the reach of coreference.

    # Parameters

    document_id : `str`
    part : `int`
        0 where the file gives none.
    begin_line : `str`
        The line that begins it, such as `#begin document (nw/1); part 000`, as it is in the file.
        By this line the reference scorer finds a document's gold mentions.
    sentences : `Tuple[DocumentSentence, ...]`
    """

    document_id: str
    part: int
    begin_line: str
    sentences: Tuple[DocumentSentence, ...]


def read_documents(path: Union[str, os.PathLike]) -> Iterator[Document]:
    """
    Streams the document parts of a file. Memory grows with the longest of them.

    Only words (column 4), speakers (column 10) and coreference (the last column that a line fills)
    are read, so that the other columns may hold anything. In files such as LitBank's, the last
    column is empty at words that are in no mention, and `_` stands where there is nothing.

    # Parameters

    path : `Union[str, os.PathLike]`
        A plain or gzip file, local or a URL.

    # Returns

    `Iterator[Document]`

    # Raises

    `ValueError`
        If the file is malformed, with the line, or holds no sentences; if a sentence stands
        outside `#begin document` and `#end document`, either line lacks the other, or there is no
        sentence between them.
    """
    begin: Optional[Rows] = None
    sentences: List[DocumentSentence] = []
    for rows in read_blocks(path, MARKERS):
        first = rows.cells[0][0]
        if first == "#begin":
            if begin is not None:
                raise _without_end(begin, f"#begin document at line {rows.first_line}")
            begin, sentences = rows, []
        elif begin is None:
            raise ValueError(
                f"{rows.place(0)}: expected a line such as #begin document (ID); part 000 first, "
                f"found {'#end document' if first == '#end' else 'a sentence'}. Put the line "
                "before the first sentence of each document."
            )
        elif first == "#end":
            if not sentences:
                raise ValueError(
                    f"{begin.place(0)}: expected a sentence in the document begun here, found "
                    f"#end document at line {rows.first_line}. Delete both lines."
                )
            yield Document(*_begun(begin), tuple(sentences))
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
            f"{begin.place(0)}: expected #begin document (ID); part 000, found {line}. Put the "
            "name in brackets, without a # at its start: that begins a comment."
        )
    return match[1], int(match[2] or 0), line


def _without_end(begin: Rows, found: str) -> ValueError:
    return ValueError(
        f"{begin.place(0)}: expected #end document for the document begun here, found {found}. "
        "Put the line after the document's last sentence, or copy the file again if it was cut off."
    )


def _sentence(rows: Rows) -> DocumentSentence:
    check_width(rows, MIN_COLUMNS, same=False)
    mentions = cluster_spans(rows, -1, _NOTHING)
    return DocumentSentence(
        line_number=rows.first_line,
        words=rows.column(3),
        speakers=tuple(None if cell in _NOTHING else cell for cell in rows.column(9)),
        mentions=tuple(Mention(cluster, start, end) for start, end, cluster in mentions),
    )
