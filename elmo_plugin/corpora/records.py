"""Labelled texts in columns with names: `.csv`, `.tsv` and JSON lines (`.jsonl`)."""

import csv
import json
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from elmo_plugin.corpora.json_lines import read_objects
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath, has_suffix, numbered_lines

logger = logging.getLogger(__name__)

# Of the whole process: a text may be a long document, and `csv` allows 131,072 characters.
csv.field_size_limit(2**31 - 1)

#: Of the files that `read_records` reads.
SUFFIXES = (".csv", ".tsv", ".jsonl")


@dataclass(frozen=True)
class LabelledTexts:
    """The texts of a row, and its label, if it is known."""

    #: `file:line`.
    location: str
    texts: Tuple[str, ...]
    label: Optional[str] = None


def records_format(lines: Sequence[str], columns: Sequence[str]) -> Optional[Tuple[str, str]]:
    """
    The format, for the user, and the suffix of records that have these columns, if the first lines
    of a file, without empty ones, look like them; otherwise `None`.
    """
    for title, suffix, delimiter in (("CSV", ".csv", ","), ("TSV", ".tsv", "\t")):
        header = [cell.strip() for cell in next(csv.reader(lines[:1], delimiter=delimiter))]
        if len(lines) > 1 and set(columns) <= set(header):
            return f"{title} with the columns {', '.join(header)}", suffix
    with suppress(ValueError, TypeError):
        fields = json.loads(lines[0])
        if isinstance(fields, dict) and set(columns) <= fields.keys():
            return f"JSON lines with the fields {', '.join(fields)}", ".jsonl"
    return None


def read_labelled_texts(
    path: FilePath, columns: Sequence[str], label: str
) -> Iterator[LabelledTexts]:
    """
    Streams the rows of a file: the texts in `columns`, and the string or number in the column
    `label`. All rows have a label or none has; if none has, this is logged. Raises `ValueError`
    with file and line if a row lacks a column or its label, and as `read_records` does.
    """
    is_labelled: Optional[bool] = None
    for location, fields in read_records(path):
        names = ", ".join(fields)
        for column in columns:
            advice = "The settings name the columns."
            expect(column in fields, location, f"the column {column!r}", names, advice)
            is_text = isinstance(fields[column], str)
            expect(is_text, location, f"a text in {column!r}", {column: fields[column]})
        found = fields.get(label)
        has_label = found is not None and str(found).strip() != ""
        if is_labelled is None and not has_label:
            logger.warning("%s: no label in %r; the columns are %s", location, label, names)
        is_labelled = has_label if is_labelled is None else is_labelled
        is_right = has_label is is_labelled and isinstance(found, (str, int, float, type(None)))
        expected = f"a label in {label!r}" if is_labelled else f"no label in {label!r}"
        advice = "Label all rows of a file or none, with a text or a number."
        expect(is_right, location, expected, {label: found}, advice)
        texts = tuple(fields[column] for column in columns)
        yield LabelledTexts(location, texts, str(found).strip() if has_label else None)


def read_records(path: FilePath) -> Iterator[Tuple[str, Dict[str, Any]]]:
    """
    Streams `file:line` and the values by column of each row. The first row of `.csv` and `.tsv`
    names the columns; cells are as Python's `csv` writes them. Raises `ValueError` if a row has
    another number of cells or wrong quotes, or if there are no rows, and as `read_objects` does.
    """
    if has_suffix(path, ".jsonl"):
        yield from read_objects(path)
        return
    header: Optional[Sequence[str]] = None
    is_empty = True
    for location, cells in _read_rows(path, "\t" if has_suffix(path, ".tsv") else ","):
        if header is None:
            header = [cell.strip() for cell in cells]
            continue
        is_empty = False
        expected = f"{len(header)} cells, as in the first row"
        expect(len(cells) == len(header), location, expected, len(cells))
        yield location, dict(zip(header, cells))
    expect(not is_empty, path, "rows below a row with the names of the columns", "none")


def _read_rows(path: FilePath, delimiter: str) -> Iterator[Tuple[str, Sequence[str]]]:
    """The rows that are not empty. A row has the number of its first line."""
    lines = (f"{line}\n" for _, line in numbered_lines(path))
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    advice = 'Write a cell with a quote as "a ""quoted"" word".'
    location = f"{path}:1"
    try:
        for cells in rows:
            # A tab beside a line end: the quote at the start of a cell was meant as text.
            is_right = delimiter == "," or not any("\t" in c and "\n" in c for c in cells)
            expect(is_right, location, "cells with quotes as of Python's csv", "others", advice)
            if any(map(str.strip, cells)):
                yield location, cells
            location = f"{path}:{rows.line_num + 1}"
    except csv.Error as error:
        expect(False, location, "cells of Python's csv", str(error), advice)
