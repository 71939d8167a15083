"""The training text of a biLM: the sentences of one or many files."""

import glob
import os
from dataclasses import replace
from random import Random
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.text_files import DecodedPath, numbered_lines

_Path = Union[str, os.PathLike]
TextPath = Union[_Path, Sequence[_Path]]


class Text:
    """
    Tokenised text, one sentence per line, words separated by white space. Empty lines are skipped.

    To shuffle it, files are read in random order into a buffer. Once it is full, each new line
    replaces a random line, which is yielded. RAM grows with the buffer and the longest line only.

    # Parameters

    data_path : `TextPath`
        A file (plain or gzip, or a URL), a folder, a pattern such as `train-*.gz`, or a list of
        these, also in a string with commas (`%2C` for a comma in a URL). Each file is read once, in
        the order of their paths. `ConfigurationError` if a part matches no file.
    shuffle_lines : `int`
        Size of the buffer, about 25 MB by default. 1 keeps the order of the lines of a file.
    max_tokens : `Optional[int]`
        Longer lines are cut into sentences of this number of words; by default none are.
    """

    def __init__(
        self, data_path: TextPath, shuffle_lines: int = 100_000, max_tokens: Optional[int] = None
    ) -> None:
        self.shards = find_shards(data_path)
        self._shuffle_lines = shuffle_lines
        self._max_tokens = max_tokens

    def sentences(self, order: Optional[Random] = None) -> Iterator[List[str]]:
        """The words of each sentence, shuffled by `order`. Raises as `numbered_lines` does."""
        shards = list(self.shards)
        if order is not None:
            order.shuffle(shards)
        # Universal newlines would end a sentence at a single carriage return.
        lines: Iterator[str] = (
            line for shard in shards for _, line in numbered_lines(shard, newline="\n")
        )
        if order is not None and self._shuffle_lines > 1:
            lines = _shuffled(lines, order, self._shuffle_lines)
        for line in lines:
            words = line.split()
            size = self._max_tokens or len(words) or 1
            for start in range(0, len(words), size):
                yield words[start : start + size]


def _shuffled(lines: Iterable[str], order: Random, size: int) -> Iterator[str]:
    buffer: List[str] = []
    for line in lines:
        if len(buffer) < size:
            buffer.append(line)
        else:
            index = int(order.random() * size)
            yield buffer[index]
            buffer[index] = line
    order.shuffle(buffer)
    yield from buffer


def decoded(
    data_path: TextPath, decoding_errors: str, tokenize: Optional[str] = None
) -> List[DecodedPath]:
    """The parts of a path, see `Text`, whose files are read as `DecodedPath` says."""
    return [DecodedPath(os.fspath(path), decoding_errors, tokenize) for path in _parts(data_path)]


def find_shards(data_path: TextPath) -> List[_Path]:
    """The files of a path, see `Text`: each once, sorted. Raises `ConfigurationError` if none."""
    shards: Dict[str, _Path] = {}
    for path in _parts(data_path):
        for name in _matches(os.fspath(path)):
            shards[name] = replace(path, path=name) if isinstance(path, DecodedPath) else name
    if not shards:
        raise ConfigurationError("Expected at least one file of text, found an empty list.")
    # A file is read once, even if its compressed copy matches too.
    twins = {name + ".gz" for name in shards}
    return [shards[name] for name in sorted(shards.keys() - twins)]


def _parts(data_path: TextPath) -> Sequence[_Path]:
    return [data_path] if isinstance(data_path, (str, os.PathLike)) else data_path


def _matches(path: str) -> List[str]:
    path = os.path.expanduser(path)
    if "," in path and not os.path.exists(path):
        return [shard for part in path.split(",") for shard in _matches(part.strip())]
    if "://" in path:
        return [path]
    if os.path.isdir(path):
        names = [name for name in os.listdir(path) if not name.startswith(".")]
        found = [os.path.join(path, name) for name in names]
    else:
        # Looked up before the pattern, because file names may contain `*`, `?` or `[`.
        named = [name for name in (path, path + ".gz") if os.path.exists(name)]
        found = named[:1] or glob.glob(path, recursive=True)
    found = [name for name in found if not os.path.isdir(name)]
    if not found:
        raise ConfigurationError(
            f"No text found: `{path}` is no file, no folder of files and no pattern that matches "
            f"a file (relative to {os.getcwd()}). Expected tokenised text, one sentence per line, "
            "plain or gzip."
        )
    return found
