"""The training text of a biLM: the sentences of one or many files."""

import glob
import os
from random import Random
from typing import Iterable, Iterator, List, Optional, Sequence, Set, Union

from elmo_plugin.util.errors import ConfigurationError, check_one_of
from elmo_plugin.util.files import is_pipe
from elmo_plugin.util.text_files import DECODING_ERRORS, numbered_lines

TextPath = Union[str, os.PathLike, Sequence[Union[str, os.PathLike]]]


class Text:
    """
    Tokenised text, one sentence per line, words separated by white space, in one or many files.
    Empty lines are skipped.

    To shuffle it, files are read in random order into a buffer of lines. Each new line replaces a
    random line of the full buffer, and the replaced line is yielded. Memory grows with the buffer
    and the longest line only.

    # Parameters

    data_path : `TextPath`
        A file (plain or gzip, or a URL), a folder, a pattern such as `train-*.gz`, or a list of
        these, also separated by commas in a string (a comma in a URL is written `%2C`). Each file
        is read once, in the order of their paths.
    shuffle_lines : `int`, optional (default = `100_000`)
        Size of the buffer, about 25 MB by default. 1 keeps the order of the lines of a file.
    max_tokens : `Optional[int]`, optional (default = `None`)
        Longer lines are cut into sentences of this number of words. Default: none are.
    decoding_errors : `str`, optional (default = `"strict"`)
        For bytes that are not UTF-8: `strict` raises an error, `replace` reads U+FFFD.

    # Raises

    `ConfigurationError`
        If a part of `data_path` matches no file or is a pipe, or `decoding_errors` is wrong.
    """

    def __init__(
        self,
        data_path: TextPath,
        shuffle_lines: int = 100_000,
        max_tokens: Optional[int] = None,
        decoding_errors: str = "strict",
    ) -> None:
        check_one_of(DECODING_ERRORS, decoding_errors=decoding_errors)
        self.shards = find_shards(data_path)
        for shard in self.shards:
            if is_pipe(shard):
                raise ConfigurationError(
                    f"Expected a file of text, but {shard} can be read only once. Write it to "
                    "a file first: text is read once per epoch, and once to count its batches."
                )
        self._shuffle_lines = shuffle_lines
        self._max_tokens = max_tokens
        self._decoding_errors = decoding_errors

    def sentences(self, order: Optional[Random] = None) -> Iterator[List[str]]:
        """
        The words of each sentence, at least one; shuffled if `order` is given.

        # Raises

        `ValueError`
            If a line is not UTF-8 and `decoding_errors` is strict, or a compressed file is damaged.
        """
        shards = list(self.shards)
        if order is not None:
            order.shuffle(shards)
        # Universal newlines would end a sentence at a single carriage return.
        settings = {"newline": "\n", "decoding_errors": self._decoding_errors}
        lines: Iterator[str] = (
            line for shard in shards for _, line in numbered_lines(shard, **settings)
        )
        if order is not None and self._shuffle_lines > 1:
            lines = _shuffled(lines, order, self._shuffle_lines)
        for line in lines:
            words = line.split()
            if self._max_tokens is None or len(words) <= self._max_tokens:
                if words:
                    yield words
            else:
                for start in range(0, len(words), self._max_tokens):
                    yield words[start : start + self._max_tokens]


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


def find_shards(data_path: TextPath) -> List[str]:
    """
    The files that match a path, see `Text`, each once, in the order of their paths, or a
    `ConfigurationError` if a part of it matches no file.
    """
    shards: Set[str] = set()
    for path in [data_path] if isinstance(data_path, (str, os.PathLike)) else data_path:
        shards.update(_matches(os.fspath(path)))
    if not shards:
        raise ConfigurationError("Expected at least one file of text, found an empty list.")
    # A file is read once, even if its compressed copy or a link to it matches too.
    twins = {shard + ".gz" for shard in shards}
    distinct = {_real_path(shard): shard for shard in sorted(shards - twins, reverse=True)}
    return sorted(distinct.values())


def _real_path(shard: str) -> str:
    return shard if "://" in shard else os.path.realpath(shard)


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
