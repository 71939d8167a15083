"""
The columns of the [CoNLL-2003 shared task](https://aclanthology.org/W03-0419/): a word per line,
its named entity tag in the last column, its chunk tag in another. In files of the
[CoNLL-2000 shared task](https://aclanthology.org/W00-0726/), the chunk tag is in the last column.
"""

from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple

from elmo_plugin.corpora.columns import check_cells, read_blocks
from elmo_plugin.corpora.tag_spans import check_span_tag
from elmo_plugin.util.text_files import FilePath

DOCUMENT_START = "-DOCSTART-"


@dataclass(frozen=True)
class Sentence:
    #: True if a `-DOCSTART-` line precedes the sentence.
    is_document_start: bool
    words: Tuple[str, ...]
    #: Unchanged; empty if the file has no tags.
    tags: Tuple[str, ...]
    #: The number of `-DOCSTART-` lines up to here.
    document: int = 0


def read_sentences(
    path: FilePath, tag_column: Optional[int] = None, *, any_tags: bool = False
) -> Iterator[Sentence]:
    """
    Streams the sentences of a file. A line has a word in the first column and perhaps a tag in
    `tag_column`, which counts from 1 and is by default the last. `tags_to_spans` names the tagging
    schemes; `any_tags` allows others. Raises `ValueError`, with file and line, if a line has an
    invalid tag, no such column, or another number of columns than the first line, and as
    `read_blocks` does.
    """
    is_document_start, document, width = False, 0, 0
    for rows in read_blocks(path, markers=(DOCUMENT_START,), comment=None):
        if rows.cells[0][0] == DOCUMENT_START:
            is_document_start, document = True, document + 1
            continue
        width = width or len(rows.cells[0])
        rows.check_width(width)
        tags: Tuple[str, ...] = ()
        if width > 1:
            column = tag_column or width
            rows.check_width(column, exactly=False)
            tags = rows.column(column - 1)
            for row, tag in enumerate(() if any_tags else tags):
                check_span_tag(tag, rows.location(row), column)
        yield Sentence(is_document_start, rows.column(0), tags, document)
        is_document_start = False


def format_sentence(
    words: Sequence[str],
    predicted: Sequence[str],
    gold: Optional[Sequence[str]] = None,
    is_document_start: bool = False,
) -> str:
    """
    Writes a sentence as `conlleval` reads it: per word a line with the word, its gold tag (if
    given) and its predicted tag. The last line is empty. Raises `ValueError` as `check_cells`. With
    `is_document_start`, a `-DOCSTART-` line comes first. `conlleval` counts it as a correct tag,
    which slightly changes its accuracy and no other score.
    """
    columns = [words, predicted] if gold is None else [words, gold, predicted]
    check_cells(words, "words", reserved=DOCUMENT_START)
    rows = list(zip(*columns, strict=True))
    if is_document_start:
        start = (DOCUMENT_START, *["O"] * (len(columns) - 1))
        rows = [start, ("",), *rows]
    return "\n".join([*(" ".join(row) for row in rows), "", ""])
