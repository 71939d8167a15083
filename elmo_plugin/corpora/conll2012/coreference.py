"""Coreference in the last column of the CoNLL-2012 shared task."""

import re
from itertools import combinations
from typing import List, Optional, Sequence

from elmo_plugin.corpora.conll2012.reader import Mention

__all__ = ["check_columns", "format_coreference"]

_BLANK = re.compile(r"[ \t\r\n]")
# From the tag to the named entity: the columns that say nothing.
_EMPTY_COLUMNS = ("-", "*", "-", "-", "-", "-", "*")


def check_columns(document_id: str, sentences: Sequence[Sequence[str]]) -> None:
    """
    Refuses what the columns have no room for.

    # Parameters

    document_id : `str`
    sentences : `Sequence[Sequence[str]]`

    # Raises

    `ValueError`
        If the document's name or a word is empty or holds a blank, tab or line end, a sentence has
        no words, or the name begins with `#`, as comments do.
    """
    if not document_id or _BLANK.search(document_id) or document_id.startswith("#"):
        raise ValueError(
            f"expected a document's name without blanks and no # at its start, found "
            f"{document_id!r}"
        )
    for sentence in sentences:
        if not sentence:
            raise ValueError("expected sentences of at least one word, found an empty one")
        for word in sentence:
            if not word or _BLANK.search(word):
                raise ValueError(f"expected words without blanks, found {word!r}")


def format_coreference(
    document_id: str,
    part: int,
    sentences: Sequence[Sequence[str]],
    mentions: Sequence[Sequence[Mention]],
    begin_line: Optional[str] = None,
) -> str:
    """
    Writes a part of a document as the reference scorer of the shared task and `read_documents`
    read it. Between the words and the coreference, the columns are empty. Columns are separated by
    tabs: among blanks, the scorer takes a word such as `8)` for coreference.

    # Parameters

    document_id : `str`
    part : `int`
    sentences : `Sequence[Sequence[str]]`
        The words of each sentence.
    mentions : `Sequence[Sequence[Mention]]`
        The mentions of each sentence, in any order.
    begin_line : `Optional[str]`, optional (default = `None`)
        The line that begins the document in the gold file. The scorer looks for this very line;
        `; part 0` is another document than `; part 000`. Without one, it is written from name and
        part as OntoNotes writes it.

    # Returns

    `str`
        The lines, from `#begin document` to `#end document`.

    # Raises

    `ValueError`
        If the format cannot hold the document: see `check_columns`; or two mentions of a cluster
        overlap without one being inside the other.
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
    # The outer one of nested mentions first.
    mentions = sorted(mentions, key=lambda m: (m.start, -m.end, m.cluster_id))
    for first, second in combinations(mentions, 2):
        # The format matches brackets by their number: it would read other mentions than these.
        crosses = first.start < second.start <= first.end < second.end
        if crosses and first.cluster_id == second.cluster_id:
            raise ValueError(
                f"expected mentions of a cluster apart or one inside the other, found words "
                f"{first.start} to {first.end} and {second.start} to {second.end} in cluster "
                f"{first.cluster_id}"
            )
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
