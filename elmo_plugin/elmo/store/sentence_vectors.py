import re
import signal
from dataclasses import dataclass
from functools import partial
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.embed import check_pool, embed_sentences, pooled
from elmo_plugin.elmo.token_batches import Sentence
from elmo_plugin.util.distributed import threads_per_process
from elmo_plugin.util.errors import ConfigurationError, check_one_of


@dataclass(frozen=True)
class DumpOptions:
    """The settings of `dump_embeddings`. Raises `ConfigurationError` for wrong ones."""

    #: `all`, `top` for the last layer only, `average` for the mean of all, or numbers: `0,2`.
    layers: str = "all"
    #: `float32`, or `float16` for half the size.
    dtype: str = "float32"
    #: For HDF5 `gzip`, or `lzf`, which is faster but which only h5py reads; for Parquet `zstd`.
    compression: Optional[str] = None
    batch_size: int = 64
    #: Do not store the map from sentences to lines, which grows with the text.
    forget_sentences: bool = False
    #: One vector per sentence instead of one per token, see `pooled`.
    pool: Optional[str] = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+(,\d+)*", self.layers):
            check_one_of(("all", "top", "average", "numbers such as 0,2"), layers=self.layers)
        check_one_of(("float32", "float16"), dtype=self.dtype)
        check_pool(self.pool)

    def numbers(self, num_layers: int) -> Optional[List[int]]:
        """The layers to write, as `chosen_layers` checks them; `None` for `top` and `average`."""
        if self.layers in ("top", "average"):
            return None
        if self.layers == "all":
            return list(range(num_layers))
        return chosen_layers([int(number) for number in self.layers.split(",")], num_layers)


class EmbeddedSentence(NamedTuple):
    """A sentence, the name of its dataset, and its vectors."""

    name: str
    words: Sequence[str]
    #: Shape `(num_layers, num_tokens, output_dim)` or `(num_tokens, output_dim)`; without
    #: `num_tokens` if they are pooled.
    vectors: numpy.ndarray


#: Sentences that are embedded together, and how far the text was read up to their end.
Group = Tuple[List[Sentence], Dict[str, Any]]
#: The sentences of a group with their vectors, and the same progress.
Embedded = Tuple[List[EmbeddedSentence], Dict[str, Any]]


@dataclass(frozen=True)
class SentenceVectors(Dataset):
    """Computes the vectors of a group, in this process or a worker."""

    bilm: Bilm
    options: DumpOptions
    input_path: str

    def __getitem__(self, group: Group) -> Union[Embedded, Exception]:
        sentences, progress = group
        # An error is returned, because a `DataLoader` adds a traceback to its message.
        try:
            return list(self._embedded(sentences)), progress
        except ConfigurationError as error:
            return error

    def _embedded(self, sentences: List[Sentence]) -> Iterator[EmbeddedSentence]:
        embedded = embed_sentences(
            self.bilm, [words for _, words in sentences], self.options.batch_size
        )
        for (line_number, words), layers in zip(sentences, embedded):
            vectors = _vectors(layers, self.options, f"{self.input_path}:{line_number}")
            # Lines count from 1, datasets from 0.
            yield EmbeddedSentence(str(line_number - 1), words, vectors)


def compute_vectors(
    vectors: SentenceVectors, groups: Iterator[Group], num_workers: int
) -> Iterator[Embedded]:
    """Yields the embedded sentences and the progress of each group, in order."""
    loader: DataLoader = DataLoader(
        vectors,
        batch_size=None,
        # The loader passes what the sampler yields to `__getitem__`.
        sampler=groups,
        num_workers=num_workers,
        collate_fn=_unchanged,
        # PyTorch's thread pools do not work in a forked process.
        multiprocessing_context="spawn" if num_workers else None,
        worker_init_fn=partial(_start_worker, threads_per_process(num_workers or 1)),
    )
    try:
        for embedded in loader:
            if isinstance(embedded, Exception):
                raise embedded
            yield embedded
    except RuntimeError as error:
        # The message for a killed worker; errors that a worker raised are returned.
        if not str(error).startswith("DataLoader worker"):
            raise
        raise ConfigurationError(f"{error} The lines done are kept.") from error


def _unchanged(embedded: Any) -> Any:
    return embedded


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
    elif options.layers != "all":
        layers = layers[options.numbers(len(layers))]
    if options.pool:
        layers = pooled(layers, options.pool)
    with numpy.errstate(over="ignore"):
        vectors = layers.numpy().astype(options.dtype, copy=False)
    if not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"{location}: expected finite vectors, found NaN or a number too large for "
            f"{options.dtype}. The biLM's weights are damaged, or its vectors need float32."
        )
    return vectors
