import json
import os
import shutil
import signal
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.corpora.digested_text import DigestedText
from elmo_plugin.elmo.dump.dump_file import DumpFile, PartWriter, finished_attributes
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.token_batches import Sentence, sentence_groups
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resumable_text import settings_difference

__all__ = [
    "DumpOptions",
    "DumpSummary",
    "check_space",
    "dump_embeddings",
    "finished_dump",
    "sentence_key",
    "vector_bytes",
]

FORMAT_VERSION = 1
# In the name of a dataset, HDF5 takes a slash for a separator and NUL for the end.
_NOT_IN_KEYS = str.maketrans({"/": "\u2215", "\0": "\u2400"})


@dataclass(frozen=True)
class DumpOptions:
    """The settings of `dump_embeddings`."""

    #: `all`, `top` for the top layer only, or `average` for the mean of all.
    layers: str = "all"
    #: `float32`, or `float16` for half the size.
    dtype: str = "float32"
    #: `gzip`, or `lzf`, which is faster but which only h5py reads.
    compression: Optional[str] = None
    batch_size: int = 64
    #: Name datasets by `sentence_key` instead of by line.
    sentence_keys: bool = False
    #: Do not store the map from sentences to lines, which grows with the text.
    forget_sentences: bool = False
    #: How to handle bytes that are not UTF-8, see `read_sentences`.
    decoding_errors: str = "strict"


@dataclass(frozen=True)
class DumpSummary:
    """
    The result of `dump_embeddings`: the size of the whole file (fewer datasets than lines only if
    sentences are keys), and the number of lines that an earlier call had done.
    """

    num_lines: int
    num_tokens: int
    num_datasets: int
    num_resumed: int


def dump_embeddings(
    bilm: Bilm,
    input_path: Union[str, os.PathLike],
    output_path: Union[str, os.PathLike],
    options: DumpOptions,
    force: bool = False,
    on_progress: Callable[[int], object] = lambda num_lines: None,
    num_workers: int = 0,
) -> DumpSummary:
    """
    Writes one HDF5 dataset per line of a text file: `(num_layers, num_tokens, output_dim)`, or
    `(num_tokens, output_dim)` for one layer or the average. An empty line gives an empty dataset.
    Attributes of the file are the options, `bilm_options`, `bilm_fingerprint`, `input`,
    `num_lines`, `text_sha256` (a digest of the sentences), `complete` and versions.

    After a kill, the same call continues after the last commit and ends with the same file:
    commits are between groups of lines that are embedded together, and the groups depend on the
    text and the options only, so that each sentence is in the same batch. Memory grows with
    `batch_size`, with the longest line and, unless `forget_sentences` or `sentence_keys` is set,
    with the distinct sentences. See `DumpFile` for the disk space.

    # Parameters

    bilm : `Bilm`
        Not stateful.
    input_path, output_path : `Union[str, os.PathLike]`
        See `read_sentences` and `DumpFile`.
    options : `DumpOptions`
    force : `bool`, optional (default = `False`)
        See `DumpFile`.
    on_progress : `Callable[[int], object]`
        Called with the number of lines done since the last call.
    num_workers : `int`, optional (default = `0`)
        Processes that compute vectors, which share the cores, unless `OMP_NUM_THREADS` is set; 0
        for this process alone. The numbers are those of one process with as many threads. Memory
        grows with it.

    # Raises

    `ConfigurationError`
        If the input is empty, the output cannot be written (see `DumpFile`) or was begun with
        another text, vectors are not finite, or a worker is killed.
    `OSError`
        If reading or writing fails. The lines done are kept.
    """
    if os.path.exists(output_path) and os.path.exists(input_path):
        if os.path.samefile(input_path, output_path):
            raise ConfigurationError(f"{output_path} is the input; name another output.")
    text = _Text(input_path, options)
    sentences = text.sentences()
    # Before the output is opened, to name an empty input or a missing one first.
    first = next(sentences, None)
    if first is None:
        raise ConfigurationError(f"{input_path} is empty; expected a sentence per line.")
    sentences = chain([first], sentences)
    with closing(DumpFile(Path(output_path), _settings(bilm, options), force)) as file:
        num_resumed = file.progress["num_lines"]
        text.skip(sentences, num_resumed, file.progress["text_sha256"], file.folder)
        on_progress(num_resumed)
        advance = None if num_workers else on_progress
        parts = _Parts(bilm, options, str(input_path), file.writer, advance)
        for group, part in _in_processes(parts, _groups(text, sentences, options), num_workers):
            file.commit(part)
            if num_workers:
                on_progress(len(group.sentences))
        num_datasets = file.finish(str(input_path), text.sentence_to_index)
    return DumpSummary(text.num_lines, text.num_tokens, num_datasets, num_resumed)


def finished_dump(
    bilm: Bilm,
    input_path: Union[str, os.PathLike],
    output_path: Union[str, os.PathLike],
    options: DumpOptions,
) -> Optional[DumpSummary]:
    """
    What `dump_embeddings` has returned; `None` if its file is not there.

    # Raises

    `ConfigurationError`
        If the file has another text or other settings.
    """
    found = finished_attributes(Path(output_path))
    if found is None:
        return None
    difference = settings_difference(found, _settings(bilm, options))
    text = DigestedText([input_path], options.decoding_errors)
    for _ in () if difference else text.sentences():
        pass
    if not difference and text.sha256 != found["text_sha256"]:
        difference = f"{input_path} has changed"
    if difference:
        raise ConfigurationError(
            f"{output_path} is finished, with other settings: {difference}. Name another output, "
            "or add --force to replace it."
        )
    return DumpSummary(text.num_lines, text.num_tokens, found["num_datasets"], text.num_lines)


def vector_bytes(bilm: Bilm, num_tokens: int, options: DumpOptions) -> int:
    """The size of the vectors of so many tokens, uncompressed."""
    num_layers = bilm.num_layers if options.layers == "all" else 1
    return num_tokens * num_layers * bilm.output_dim * numpy.dtype(options.dtype).itemsize


def check_space(output_path: Union[str, os.PathLike], num_bytes: int) -> None:
    """
    Raises `ConfigurationError` if the disk has not so many bytes, less what an unfinished call has
    written of this output.
    """
    folder = Path(f"{output_path}.unfinished")
    done = sum(path.stat().st_size for path in folder.glob("*"))
    while not folder.is_dir():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if num_bytes - done > free:
        raise ConfigurationError(
            f"{output_path} needs {num_bytes / 1e9:.1f} GB while it is written, and "
            f"{free / 1e9:.1f} GB are free. Free some space, write fewer layers, or add --half."
        )


def sentence_key(words: Sequence[str]) -> str:
    """
    The name of a sentence's dataset if sentences are keys: its words joined by one space. HDF5 does
    not allow all names: `/` is replaced by `∕` (U+2215), NUL by `␀` (U+2400), and a sentence that
    is only a full stop by `․` (U+2024). Empty for a sentence without words.
    """
    key = " ".join(words).translate(_NOT_IN_KEYS)
    return "\u2024" if key == "." else key


class _Text(DigestedText):
    """Also maps sentences to lines, if the options ask for it."""

    def __init__(self, path: Union[str, os.PathLike], options: DumpOptions) -> None:
        super().__init__([path], options.decoding_errors)
        has_index = not (options.sentence_keys or options.forget_sentences)
        self.sentence_to_index: Optional[Dict[str, str]] = {} if has_index else None

    def sentences(self) -> Iterator[Sentence]:
        for line_number, words in super().sentences():
            if self.sentence_to_index is not None:
                self.sentence_to_index.setdefault(" ".join(words), str(line_number - 1))
            yield line_number, words


@dataclass(frozen=True)
class _Group:
    """Sentences that are embedded together, and the state of the text after them."""

    sentences: List[Sentence]
    num_lines: int
    text_sha256: str


def _groups(text: _Text, sentences: Iterator[Sentence], options: DumpOptions) -> Iterator[_Group]:
    for group in sentence_groups(sentences, options.batch_size):
        yield _Group(group, text.num_lines, text.sha256)


class _Parts(Dataset):
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

    def __getitem__(self, group: _Group) -> Tuple[_Group, Union[Path, Exception]]:
        # An error is returned, because a `DataLoader` adds a traceback to its message.
        try:
            datasets = list(self._datasets(group.sentences))
            return group, self._writer.write(group.num_lines, group.text_sha256, datasets)
        except (ConfigurationError, OSError) as error:
            return group, error

    def _datasets(self, sentences: List[Sentence]) -> Iterator[Tuple[str, numpy.ndarray]]:
        options = self._options
        embedded = embed_sentences(
            self._bilm, [words for _, words in sentences], options.batch_size
        )
        for (line_number, words), layers in zip(sentences, embedded):
            key = sentence_key(words) if options.sentence_keys else str(line_number - 1)
            if key:
                yield key, _vectors(layers, options, f"{self._input_path}:{line_number}")
            if self._on_progress is not None:
                self._on_progress(1)


def _in_processes(
    parts: _Parts, groups: Iterator[_Group], num_workers: int
) -> Iterator[Tuple[_Group, Path]]:
    """In the order of the groups."""
    num_threads = torch.get_num_threads()
    if num_workers and "OMP_NUM_THREADS" not in os.environ:
        num_threads = max(1, num_threads // num_workers)
    loader: DataLoader = DataLoader(
        parts,
        batch_size=None,
        # What a sampler yields is what `__getitem__` is given.
        sampler=groups,
        num_workers=num_workers,
        # A forked process cannot use the threads of this one.
        multiprocessing_context="spawn" if num_workers else None,
        worker_init_fn=partial(_start_worker, num_threads),
    )
    try:
        for group, part in loader:
            if isinstance(part, Exception):
                raise part
            yield group, part
    except RuntimeError as error:
        # One that was killed, not one that raised an error.
        if not str(error).startswith("DataLoader worker"):
            raise
        raise ConfigurationError(f"{error} The lines done are kept.") from error


def _start_worker(num_threads: int, number: int) -> None:
    # Ctrl+C also reaches the workers; this process ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(num_threads)


def _vectors(layers: torch.Tensor, options: DumpOptions, place: str) -> numpy.ndarray:
    layers = layers.float()
    if options.layers == "top":
        layers = layers[-1]
    elif options.layers == "average":
        layers = layers.mean(dim=0)
    with numpy.errstate(over="ignore"):
        vectors = layers.numpy().astype(options.dtype, copy=False)
    if not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"{place}: expected finite vectors, found NaN or a number too large for "
            f"{options.dtype}. The biLM's weights are damaged, or its vectors need float32."
        )
    return vectors


def _settings(bilm: Bilm, options: DumpOptions) -> Dict[str, Any]:
    weight = next(bilm.parameters())
    # The words of token embeddings are too long for an attribute.
    source = {name: value for name, value in bilm.options.source.items() if name != "vocabulary"}
    settings = asdict(options)
    # Not needed to continue: the digest of the sentences is compared.
    del settings["decoding_errors"]
    return {
        "format_version": FORMAT_VERSION,
        **settings,
        "compression": options.compression or "none",
        "computed_in": str(weight.dtype).replace("torch.", ""),
        "computed_on": weight.device.type,
        "bilm_options": json.dumps(source, sort_keys=True),
        "bilm_fingerprint": fingerprint(bilm),
    }
