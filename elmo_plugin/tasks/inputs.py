"""What a predictor reads: raw text, JSON lines or a corpus, recognised by its first lines."""

import os
import re
import sys
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

from allennlp.data import Instance
from allennlp.predictors import Predictor

from elmo_plugin.tasks.predictor import TaskPredictor
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import is_pipe
from elmo_plugin.util.text_files import Source, numbered_lines

FORMATS = ("text", "json", "corpus")
STANDARD_INPUT = "-"
# By so many lines a format is recognised.
_NUM_LINES = 50
# The beginning of errors of `TaskPredictor.load_line`.
_LINE = re.compile(r"^non-empty line \d+: ")

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
    then only names. `format` is one of `FORMATS`, or `None` to recognise it. A predictor of another
    package reads JSON lines. Raises `ConfigurationError` if there is no input, and `ValueError`
    with file and line for a wrong one.
    """
    name = "standard input" if path == STANDARD_INPUT else path
    if text is None and os.path.isdir(path):
        return _corpus(predictor, path, name)
    # A terminal shows each answer at once.
    most = 1 if path == STANDARD_INPUT and sys.stdin.isatty() else _NUM_LINES
    lines = _lines(path, text)
    head = _first(lines, most)
    shown = [line for _, line in head if line.strip()]
    if not shown:
        raise ConfigurationError(f"{name}: expected at least one instance to predict, found none.")
    lines = chain(head, lines)
    format = format or _recognised(predictor, shown)
    if format == "corpus":
        is_file = text is None and path != STANDARD_INPUT and not is_pipe(path)
        return _corpus(predictor, path if is_file else None, name, lines)
    if format == "text":
        unit = "a document" if predictor.reads_documents else "a sentence"
        return Inputs(
            f"{name}: read as text, {unit} per line",
            False,
            _loaded(predictor.load_text, name, lines),
        )
    return Inputs(f"{name}: read as JSON lines", False, _loaded(predictor.load_line, name, lines))


def at_least_one(items: Iterator[Any], name: str) -> Iterator[Any]:
    """The items. Raises `ConfigurationError`, which names their source, if there are none."""
    first = next(items, None)
    if first is None:
        raise ConfigurationError(f"{name}: expected at least one instance to predict, found none.")
    yield first
    yield from items


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


def _recognised(predictor: Predictor, lines: List[str]) -> str:
    if not isinstance(predictor, TaskPredictor):
        return "json"
    if predictor.is_corpus(lines):
        return "corpus"
    is_json = lines[0].lstrip().startswith("{") or predictor.text_field is None
    return "json" if is_json else "text"


def _loaded(load: Callable[[str], Any], name: str, lines: Lines) -> Iterator[Any]:
    for number, line in lines:
        if line and not line.isspace():
            try:
                yield load(f"{line}\n")
            except ValueError as error:
                reason = _LINE.sub("", str(error))
                raise ValueError(f"{name}:{number}: {reason}") from error


def _corpus(
    predictor: Predictor, path: Optional[str], name: str, lines: Optional[Lines] = None
) -> Inputs:
    format = getattr(predictor, "corpus_format", "a corpus")
    items = _instances(predictor, path, lines)
    return Inputs(f"{name}: read as {format}", True, at_least_one(items, name))


def _instances(
    predictor: Predictor, path: Optional[str], lines: Optional[Lines]
) -> Iterator[Instance]:
    """The instances of a file, or else of a copy of `lines`: readers open files."""
    if path is not None:
        yield from predictor._dataset_reader.read(path)
        return
    with TemporaryDirectory() as folder:
        copy = Path(folder, "input")
        with open(copy, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for _, line in lines or ())
        yield from predictor._dataset_reader.read(str(copy))
