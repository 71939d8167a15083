"""Writes documents with coreference in the columns of the CoNLL-2012 shared task."""

import re
from typing import List, Optional, Sequence

from elmo_plugin.corpora.conll2012.documents import Mention

_BLANK = re.compile(r"[ \t\r\n]")
# The columns from the POS tag to the named entity, without annotation.
_EMPTY_COLUMNS = ("-", "*", "-", "-", "-", "-", "*")


def check_columns(document_id: str, sentences: Sequence[Sequence[str]]) -> None:
    """
    Refuses a document that the columns cannot represent.

    # Raises

    `ValueError`
        If the document's name or a word is empty or contains a space, tab or line end, if a
        sentence has no words, or if the name starts with `#`, as a comment does.
    """
    if not document_id or _BLANK.search(document_id) or document_id.startswith("#"):
        raise ValueError(
            f"expected a document name that has no spaces and does not start with #, found "
            f"{document_id!r}"
        )
    for sentence in sentences:
        if not sentence:
            raise ValueError("expected sentences of at least one word, found an empty one")
        for word in sentence:
            if not word or _BLANK.search(word):
                raise ValueError(f"expected words without spaces, found {word!r}")


def format_coreference(
    document_id: str,
    part: int,
    sentences: Sequence[Sequence[str]],
    mentions: Sequence[Sequence[Mention]],
    begin_line: Optional[str] = None,
) -> str:
    """
    Writes a part of a document for the reference scorer of the shared task and for
    `read_documents`. The columns between words and coreference are empty. Columns are separated by
    tabs: if they were separated by spaces, the scorer would read a word such as `8)` as
    coreference.

    # Parameters

    document_id : `str`
    part : `int`
    sentences : `Sequence[Sequence[str]]`
        The words of each sentence.
    mentions : `Sequence[Sequence[Mention]]`
        The mentions of each sentence, in any order. Those of a cluster do not cross: brackets are
        matched by cluster, so they would be read as other mentions.
    begin_line : `Optional[str]`, optional (default = `None`)
        The first line of the document in the gold file. The scorer matches documents by this line,
        and `; part 0` differs from `; part 000`. By default, the line is made from name and part as
        in OntoNotes.

    # Returns

    `str`
        The lines, from `#begin document` to `#end document`.

    # Raises

    `ValueError`
        See `check_columns`.
    """
    check_columns(document_id, sentences)
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
