"""What a predictor reads: raw text, JSON lines or a corpus, recognised by its first lines."""

import csv
import json
import os
import sys
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from allennlp.predictors import Predictor

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.corpora.records import read_records, records_format
from elmo_plugin.tasks.predictor import TaskPredictor
from elmo_plugin.util.errors import ConfigurationError, expect, unexpected
from elmo_plugin.util.files import STANDARD_INPUT, is_pipe
from elmo_plugin.util.text_files import Source, has_suffix, numbered_lines

# By so many lines a format is recognised.
_NUM_LINES = 50

#: Numbers and texts of lines.
Lines = Iterator[Tuple[int, str]]


class Inputs(NamedTuple):
    """What `predict_batch_json` reads or, of a corpus, `predict_batch_instance`."""

    #: For the user: `reviews.txt: read as JSON lines`.
    description: str
    is_corpus: bool
    items: Iterator[Any]


def read_inputs(
    predictor: Predictor, path: str, format: Optional[str] = None, text: Optional[str] = None
) -> Inputs:
    """
    Streams the inputs in a file, plain or gzip, in standard input (`-`), or in a `text` that `path`
    then only names. `format` is `text`, `json` or `corpus`, or `None` to recognise it. A predictor
    of another package reads JSON lines. Raises `ConfigurationError` if there is no input, and
    `ValueError` with file and line for a wrong one.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    if text is None and os.path.isdir(path):
        items = predictor._dataset_reader.read(path)
        return Inputs(f"{name}: read as a corpus", True, at_least_one(items, name))
    # A terminal shows each answer at once.
    most = 1 if path == STANDARD_INPUT and sys.stdin.isatty() else _NUM_LINES
    lines = _lines(path, text)
    head = _first(lines, most)
    shown = list(at_least_one((line for _, line in head if line.strip()), name))
    lines = chain(head, lines)
    is_file = text is None and path != STANDARD_INPUT and not is_pipe(path)
    source = _Source(name, lines, path if is_file else None)
    if not isinstance(predictor, TaskPredictor):
        items = source.loaded(lambda line, location: predictor.load_line(line))
        return Inputs(f"{name}: read as JSON lines", False, items)
    found = predictor.corpus_format(shown)
    if format == "corpus" or (format is None and found):
        title, suffix = found or ("a corpus", "")
        items = source.read(predictor._dataset_reader.read, suffix)
        return Inputs(f"{name}: read as {title}", True, at_least_one(items, name))
    found = records_format(shown, list(predictor.example))
    if format is None and found and found[1] != ".jsonl":
        items = source.read(partial(_records, predictor), found[1])
        return Inputs(f"{name}: read as {found[0]}", False, items)
    is_object = shown[0].lstrip().startswith("{") or has_suffix(name, ".jsonl")
    if format is None:
        _check_names(predictor, head, name, is_object)
    if format == "text" or (format is None and predictor.text_field and not is_object):
        items = source.loaded(partial(predictor.load, is_text=True))
        return Inputs(f"{name}: read as {_kind_of_text(predictor, shown)}", False, items)
    return Inputs(f"{name}: read as JSON lines", False, source.loaded(predictor.load))


def at_least_one(items: Iterator[Any], name: str) -> Iterator[Any]:
    """The items. Raises `ConfigurationError`, which names their source, if there are none."""
    first = next(items, None)
    if first is None:
        raise ConfigurationError(f"{name}: expected at least one instance to predict, found none.")
    yield first
    yield from items


def _check_names(
    predictor: TaskPredictor, head: List[Tuple[int, str]], name: str, is_object: bool
) -> None:
    """
    Raises `ValueError` if the first of JSON lines has no field of the task, or the file is named as
    a table: its first row has not the columns of the task.
    """
    number, line = next((number, line) for number, line in head if line.strip())
    location = f"{name}:{number}"
    columns = list(getattr(predictor._dataset_reader, "columns", predictor.example))
    expected = ", ".join(columns)
    if is_object:
        names = parse_object(line, location, json.dumps(predictor.example))
        # The corpora of tasks without one text have other fields.
        is_right = not predictor.text_field or set(names) & {*columns, *predictor.schema}
        found = f"the fields {', '.join(names)}"
        expect(is_right, location, f"the fields {expected}", found, "Rename them.")
    for suffix, delimiter, separator in ((".csv", ",", "commas"), (".tsv", "\t", "tabs")):
        if has_suffix(name, suffix) and not is_object:
            header = next(csv.reader([line], delimiter=delimiter))
            has_columns = set(columns) <= set(header)
            found = "no rows below them" if has_columns else f"the columns {', '.join(header)}"
            advice = f"Rename them and separate them by {separator}, or choose --input-format"
            advice = "" if has_columns else f"{advice} of elmo predict."
            raise unexpected(location, f"rows with the columns {expected}", found, advice)


def _kind_of_text(predictor: TaskPredictor, lines: List[str]) -> str:
    kind = f"text, a {'document' if predictor.reads_documents else 'sentence'} per line"
    if predictor.has_word_per_line and len(lines) > 1 and all(len(x.split()) == 1 for x in lines):
        advice = "If it has a word per line, add --input-format corpus to elmo predict"
        return f"{kind}; every line is one word. {advice}."
    return kind


def _lines(path: str, text: Optional[str]) -> Lines:
    if text is not None:
        return enumerate(text.splitlines(), start=1)
    source: Source = path
    if path == STANDARD_INPUT:
        # Not as a path such as /dev/stdin, which would reopen a redirected file at its start.
        source = open(sys.stdin.fileno(), "rb", closefd=False)
    return numbered_lines(source)


def _first(lines: Lines, most: int) -> List[Tuple[int, str]]:
    """The first lines, up to `most` that are not empty."""
    head = []
    for number, line in lines:
        head.append((number, line))
        most -= bool(line.strip())
        if not most:
            break
    return head


class _Source(NamedTuple):
    """Lines that are read once; `path`, if they are those of a file."""

    name: str
    lines: Lines
    path: Optional[str]

    def loaded(self, load: Callable[[str, str], Any]) -> Iterator[Any]:
        for number, line in self.lines:
            if line and not line.isspace():
                yield load(line, f"{self.name}:{number}")

    def read(self, read: Callable[[str], Iterable[Any]], suffix: str) -> Iterator[Any]:
        """What `read` reads of the file or, unless its name has the suffix, of a copy."""
        if self.path is not None and (not suffix or has_suffix(self.path, suffix)):
            yield from read(self.path)
            return
        with TemporaryDirectory() as folder:
            copy = Path(folder, f"input{suffix}")
            with open(copy, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for _, line in self.lines)
            try:
                yield from read(str(copy))
            except ValueError as error:
                raise ValueError(str(error).replace(str(copy), self.name)) from error


def _records(predictor: TaskPredictor, path: str) -> Iterator[Any]:
    for location, row in read_records(path):
        fields = {name: value for name, value in row.items() if name in predictor.schema and value}
        yield predictor.load(json.dumps(fields), location)
