"""
Named entities in the columns of the [CoNLL-2003 shared task](https://aclanthology.org/W03-0419/):
a word per line, its tag last.
"""

import os
import re
from dataclasses import dataclass
from typing import Iterator, List, Optional, Sequence, Tuple, Union

from elmo_plugin.corpora.columns import Rows, read_blocks

__all__ = [
    "Entity",
    "Sentence",
    "bio_tags",
    "check_word",
    "find_entities",
    "format_sentence",
    "read_sentences",
]

_DOCUMENT_START = "-DOCSTART-"
_TAG = re.compile(r"O|[BIESLU]-.+")
# Tags after which the same entity cannot go on.
_LAST = ("E", "L", "S", "U", "O")
# Of Unicode's other white space `read_sentences` lets a word have any.
_BLANK = re.compile(r"[ \t\r\n]")


@dataclass(frozen=True)
class Entity:
    """
    A span of a sentence that is a name.

    # Parameters

    label : `str`
        Its type: `PER`, `ORG`, `LOC`, `MISC` in CoNLL-2003.
    start : `int`
        Position of its first word in the sentence.
    end : `int`
        Position of its last word in the sentence.
    """

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """
    # Parameters

    line_number : `int`
        The line of the file that holds the first word, counted from 1.
    document : `int`
        Number of the sentence's document in the file, counted from 0.
    is_document_start : `bool`
        Whether a `-DOCSTART-` line stands before the sentence.
    words : `Tuple[str, ...]`
    tags : `Tuple[str, ...]`
        As in the file, whatever their scheme; none where the file has words alone.
    entities : `Tuple[Entity, ...]`
        What the tags mean, from left to right.
    """

    line_number: int
    document: int
    is_document_start: bool
    words: Tuple[str, ...]
    tags: Tuple[str, ...]
    entities: Tuple[Entity, ...]


def read_sentences(path: Union[str, os.PathLike]) -> Iterator[Sentence]:
    """
    Streams the sentences of a file whose lines hold a word in the first column and its tag in the
    last, or words alone. Tags may be those of any scheme, see `find_entities`.

    # Parameters

    path : `Union[str, os.PathLike]`
        A plain or gzip file, local or a URL.

    # Returns

    `Iterator[Sentence]`

    # Raises

    `ValueError`
        If a line has more or fewer columns than the first or a tag that is none, is not UTF-8, or
        the file holds no sentences; the message names file and line.
    """
    document, is_document_start, width = 0, False, None
    is_first = True
    for rows in read_blocks(path, markers=(_DOCUMENT_START,), comment=None):
        if rows.cells[0][0] == _DOCUMENT_START:
            is_document_start = True
            continue
        document += is_document_start and not is_first
        width = width or len(rows.cells[0])
        _check(rows, width)
        tags = rows.column(-1) if width > 1 else ()
        yield Sentence(
            rows.first_line,
            document,
            is_document_start,
            rows.column(0),
            tags,
            tuple(find_entities(tags)),
        )
        is_document_start = is_first = False


def _check(rows: Rows, width: int) -> None:
    for row, cells in enumerate(rows.cells):
        if len(cells) != width:
            raise ValueError(
                f"{rows.place(row)}: expected {width} columns as in the first sentence, found "
                f"{len(cells)}. Give each line its word first and its tag last, or give the whole "
                "file words alone, and leave a line empty after each sentence."
            )
        if width > 1 and not _TAG.fullmatch(cells[-1]):
            raise ValueError(
                f"{rows.place(row)}: expected a tag such as O, B-PER or I-PER in the last column, "
                f"found {cells[-1]!r}. Write O, or B-, I-, E-, S-, L- or U- and the entity's type."
            )


def find_entities(tags: Sequence[str]) -> List[Entity]:
    """
    The entities that tags mark. IOB1, BIO (IOB2), BIOES and BIOUL are read alike, and every
    sequence has a meaning.

    Of `B`, `I` and `O` these are the rules of the shared task's scorer, `conlleval`, which knows no
    other tags: an entity starts at a `B`, and at an `I` that follows `O` or another type; it ends
    before `O` and where the next one starts. `S` and `E` extend them as
    [seqeval](https://github.com/chakki-works/seqeval) does: an entity also starts at an `S`, and at
    any tag after an `S` or `E`, with which it ends. BIOUL's `U` is read as `S`, its `L` as `E`.

    # Parameters

    tags : `Sequence[str]`
        A tag per word.

    # Returns

    `List[Entity]`
        From left to right.
    """
    entities: List[Entity] = []
    before, label_before = "O", ""
    for position, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix != "O":
            if prefix in ("B", "S", "U") or before in _LAST or label != label_before:
                entities.append(Entity(label, position, position))
            else:
                entities[-1] = Entity(label, entities[-1].start, position)
        before, label_before = prefix, label
    return entities


def bio_tags(entities: Sequence[Entity], num_words: int) -> List[str]:
    """
    # Parameters

    entities : `Sequence[Entity]`
        Spans that do not overlap.
    num_words : `int`

    # Returns

    `List[str]`
        A tag per word, `B-` on each entity's first.
    """
    tags = ["O"] * num_words
    for entity in entities:
        tags[entity.start] = f"B-{entity.label}"
        for position in range(entity.start + 1, entity.end + 1):
            tags[position] = f"I-{entity.label}"
    return tags


def check_word(word: str) -> None:
    """
    Refuses a word that a file of columns cannot hold.

    # Raises

    `ValueError`
        If the word is empty, holds a blank, tab or line end, or is `-DOCSTART-`.
    """
    if not word or _BLANK.search(word) or word == _DOCUMENT_START:
        raise ValueError(
            f"expected words without blanks and other than {_DOCUMENT_START}, found {word!r}"
        )


def format_sentence(
    words: Sequence[str],
    predicted: Sequence[str],
    gold: Optional[Sequence[str]] = None,
    is_document_start: bool = False,
) -> str:
    """
    Writes a sentence as `conlleval` reads it: a word per line, its gold tag and its predicted one.

    # Parameters

    words : `Sequence[str]`
    predicted : `Sequence[str]`
        A tag per word.
    gold : `Optional[Sequence[str]]`, optional (default = `None`)
        A tag per word. Without them there is no such column, and nothing to score.
    is_document_start : `bool`, optional (default = `False`)
        Whether to write a `-DOCSTART-` line first. `conlleval` counts it as one more right tag,
        which changes its accuracy a little and no other score.

    # Returns

    `str`
        The lines, an empty one last.

    # Raises

    `ValueError`
        If the format has no room for a word, see `check_word`, or the numbers of words and tags
        differ.
    """
    columns = [words, predicted] if gold is None else [words, gold, predicted]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            f"expected a tag for each of {len(words)} words, found "
            f"{' and '.join(str(len(column)) for column in columns[1:])}"
        )
    for word in words:
        check_word(word)
    rows = list(zip(*columns))
    if is_document_start:
        start = (_DOCUMENT_START, *["O"] * (len(columns) - 1))
        rows = [start, ("",), *rows]
    return "\n".join([*(" ".join(row) for row in rows), "", ""])
