"""Computes the vectors of groups of sentences, here or in other processes, and writes them."""

import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.dump.part_file import EmbeddedSentence, PartWriter
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.token_batches import Sentence
from elmo_plugin.util.distributed import threads_per_process
from elmo_plugin.util.errors import ConfigurationError, check_one_of

# In the name of a dataset, HDF5 takes a slash for a separator and NUL for the end.
_NOT_IN_KEYS = str.maketrans({"/": "\u2215", "\0": "\u2400"})
# HDF5 takes the first for a group, and safetensors the second for its metadata.
_NOT_KEYS = {".": "\u2024", "__metadata__": "\uff3f_metadata__"}
_LAYERS = ("all", "top", "average")
_DTYPES = ("float32", "float16")


@dataclass(frozen=True)
class DumpOptions:
    """The settings of `dump_embeddings`, or a `ConfigurationError` for wrong ones."""

    #: `all`, `top` for the last layer only, or `average` for the mean of all.
    layers: str = "all"
    #: `float32`, or `float16` for half the size.
    dtype: str = "float32"
    #: For HDF5 `gzip`, or `lzf`, which is faster but which only h5py reads; for Parquet `zstd`.
    compression: Optional[str] = None
    batch_size: int = 64
    #: Name datasets by `sentence_name` instead of by line.
    sentence_keys: bool = False
    #: Do not store the map from sentences to lines, which grows with the text.
    forget_sentences: bool = False

    def __post_init__(self) -> None:
        check_one_of(_LAYERS, layers=self.layers)
        check_one_of(_DTYPES, dtype=self.dtype)


@dataclass(frozen=True)
class SentenceGroup:
    """Sentences that are embedded together, and the state of the text after them."""

    sentences: List[Sentence]
    num_lines: int
    text_sha256: str


class Parts(Dataset):
    """Computes and writes the vectors of a group: what the workers do."""

    def __init__(
        self,
        bilm: Bilm,
        options: DumpOptions,
        input_path: str,
        writer: PartWriter,
        on_progress: Optional[Callable[[int], object]],
    ) -> None:
        self._bilm, self._options, self._input_path = bilm, options, input_path
        self._writer, self._on_progress = writer, on_progress

    def __getitem__(self, group: SentenceGroup) -> Tuple[SentenceGroup, Union[Path, Exception]]:
        # An error is returned, because a `DataLoader` adds a traceback to its message.
        try:
            sentences = list(self._embedded(group.sentences))
            return group, self._writer.write(group.num_lines, group.text_sha256, sentences)
        except (ConfigurationError, OSError) as error:
            return group, error

    def _embedded(self, sentences: List[Sentence]) -> Iterator[EmbeddedSentence]:
        options = self._options
        embedded = embed_sentences(
            self._bilm, [words for _, words in sentences], options.batch_size
        )
        for (line_number, words), layers in zip(sentences, embedded):
            name = dataset_name(line_number, words, options)
            if name:
                vectors = _vectors(layers, options, f"{self._input_path}:{line_number}")
                yield EmbeddedSentence(name, words, vectors)
            if self._on_progress is not None:
                self._on_progress(1)


def compute_parts(
    parts: Parts, groups: Iterator[SentenceGroup], num_workers: int
) -> Iterator[Tuple[SentenceGroup, Path]]:
    """Yields each group with its part, in the order of the groups."""
    num_threads = threads_per_process(num_workers or 1)
    loader: DataLoader = DataLoader(
        parts,
        batch_size=None,
        # The loader passes what the sampler yields to `__getitem__`.
        sampler=groups,
        num_workers=num_workers,
        # PyTorch's thread pools do not work in a forked process.
        multiprocessing_context="spawn" if num_workers else None,
        worker_init_fn=partial(_start_worker, num_threads),
    )
    try:
        for group, part in loader:
            if isinstance(part, Exception):
                raise part
            yield group, part
    except RuntimeError as error:
        # The message for a killed worker; errors that a worker raised are returned.
        if not str(error).startswith("DataLoader worker"):
            raise
        raise ConfigurationError(f"{error} The lines done are kept.") from error


def dataset_name(line_number: int, words: Sequence[str], options: DumpOptions) -> str:
    """The dataset name for a line, numbered from 1; empty if the line is not written."""
    return sentence_name(words) if options.sentence_keys else str(line_number - 1)


def sentence_name(words: Sequence[str]) -> str:
    """
    The name of a sentence's dataset if sentences are keys: its words joined by one space. Some
    names are not possible: `/` is replaced by `∕` (U+2215), NUL by `␀` (U+2400), a sentence that is
    only a full stop by `․` (U+2024), and the first character of `__metadata__` by U+FF3F. Empty for
    a sentence without words.
    """
    key = " ".join(words).translate(_NOT_IN_KEYS)
    return _NOT_KEYS.get(key, key)


def _start_worker(num_threads: int, number: int) -> None:
    # Ctrl+C also reaches the workers, but the main process ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(num_threads)


def _vectors(layers: torch.Tensor, options: DumpOptions, location: str) -> numpy.ndarray:
    layers = layers.float()
    if options.layers == "top":
        layers = layers[-1]
    elif options.layers == "average":
        layers = layers.mean(dim=0)
    with numpy.errstate(over="ignore"):
        vectors = layers.numpy().astype(options.dtype, copy=False)
    if not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"{location}: expected finite vectors, found NaN or a number too large for "
            f"{options.dtype}. The biLM's weights are damaged, or its vectors need float32."
        )
    return vectors
