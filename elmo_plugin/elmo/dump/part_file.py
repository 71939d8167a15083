"""The plain files that a dump consists of until it is finished."""

import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError


class EmbeddedSentence(NamedTuple):
    """A sentence of a part."""

    #: The name of its dataset.
    name: str
    words: Sequence[str]
    #: Shape `(num_layers, num_tokens, output_dim)` or `(num_tokens, output_dim)`.
    vectors: numpy.ndarray


class PartEntry(NamedTuple):
    """The entry of a sentence in the header of a part; `shape` is that of its vectors."""

    name: str
    shape: List[int]
    words: List[str]


@dataclass(frozen=True)
class PartWriter:
    """
    Writes the vectors of some lines as a plain file, in any process; `DumpFile.commit` makes it a
    part of the whole.
    """

    folder: Path
    settings: Dict[str, Any]

    def write(
        self, num_lines: int, text_sha256: str, sentences: Sequence[EmbeddedSentence]
    ) -> Path:
        """
        # Parameters

        num_lines, text_sha256 : `int`, `str`
            The number of lines up to the end of this part, and their digest.
        sentences : `Sequence[EmbeddedSentence]`
            Of several sentences with one name, the first is used.

        # Raises

        `OSError`
        """
        progress = {**self.settings, "num_lines": num_lines, "text_sha256": text_sha256}
        entries = [(name, vectors.shape, words) for name, words, vectors in sentences]
        written = self.folder / f"{num_lines:012}.{os.getpid()}.written"
        with atomic_write(written) as path, open(path, "wb") as part:
            part.write(json.dumps([progress, entries]).encode() + b"\n")
            for sentence in sentences:
                part.write(numpy.ascontiguousarray(sentence.vectors).data)
        return written


def read_header(path: Path) -> Tuple[Dict[str, Any], List[PartEntry]]:
    """
    The settings, the progress after the part, and its sentences without their vectors.

    # Raises

    `ConfigurationError`
        If the part is damaged.
    """
    with open(path, "rb") as part:
        try:
            progress, entries = json.loads(part.readline())
            return progress, [PartEntry(*entry) for entry in entries]
        except (ValueError, TypeError):
            raise _damaged(path) from None


def read_part(path: Path) -> Iterator[EmbeddedSentence]:
    """
    The sentences in the order of their lines; the vectors of one at a time are in memory.

    # Raises

    `ConfigurationError`
        If the part is damaged.
    """
    progress, entries = read_header(path)
    dtype = numpy.dtype(progress["dtype"])
    with open(path, "rb") as part:
        part.readline()
        for name, shape, words in entries:
            size = math.prod(shape) * dtype.itemsize
            content = part.read(size)
            if len(content) != size:
                raise _damaged(path)
            yield EmbeddedSentence(name, words, numpy.frombuffer(content, dtype).reshape(shape))


def _damaged(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is damaged. Delete its folder and run the same command again."
    )
