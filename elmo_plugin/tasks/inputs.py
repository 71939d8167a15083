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
from elmo_plugin.util.text_files import Source, has_suffix, numbered_lines

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
        return _corpus(predictor, path, name, iter(()), "a corpus", "")
    # A terminal shows each answer at once.
    most = 1 if path == STANDARD_INPUT and sys.stdin.isatty() else _NUM_LINES
    lines = _lines(path, text)
    head = _first(lines, most)
    shown = [line for _, line in head if line.strip()]
    if not shown:
        raise ConfigurationError(f"{name}: expected at least one instance to predict, found none.")
    lines = chain(head, lines)
    is_ours = isinstance(predictor, TaskPredictor)
    found = predictor.corpus_format(shown) if is_ours else None
    if format == "corpus" or (format is None and found):
        is_file = text is None and path != STANDARD_INPUT and not is_pipe(path)
        title, suffix = found or ("a corpus", "")
        return _corpus(predictor, path if is_file else None, name, lines, title, suffix)
    takes_text = is_ours and predictor.text_field and not shown[0].lstrip().startswith("{")
    if format == "text" or (format is None and takes_text):
        unit = "document" if predictor.reads_documents else "sentence"
        items = _loaded(predictor.load_text, name, lines)
        return Inputs(f"{name}: read as text, a {unit} per line", False, items)
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


def _loaded(load: Callable[[str], Any], name: str, lines: Lines) -> Iterator[Any]:
    for number, line in lines:
        if line and not line.isspace():
            try:
                yield load(f"{line}\n")
            except ValueError as error:
                reason = _LINE.sub("", str(error))
                raise ValueError(f"{name}:{number}: {reason}") from error


def _corpus(
    predictor: Predictor,
    path: Optional[str],
    name: str,
    lines: Lines,
    format: str,
    suffix: str,
) -> Inputs:
    is_named = path is not None and (not suffix or has_suffix(path, suffix))
    items = _copied(predictor, lines, name, suffix)
    if path is not None and is_named:
        items = predictor._dataset_reader.read(path)
    return Inputs(f"{name}: read as {format}", True, at_least_one(items, name))


def _copied(predictor: Predictor, lines: Lines, name: str, suffix: str) -> Iterator[Instance]:
    """The instances of a copy of `lines`, whose name has the suffix: readers open files."""
    with TemporaryDirectory() as folder:
        copy = Path(folder, f"input{suffix}")
        with open(copy, "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for _, line in lines)
        try:
            yield from predictor._dataset_reader.read(str(copy))
        except ValueError as error:
            raise ValueError(str(error).replace(str(copy), name)) from error
