import json
import os
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Union

import numpy
import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.corpora.digested_text import DigestedText
from elmo_plugin.elmo.dump.dump_file import DumpFile
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.token_batches import Sentence, sentence_groups
from elmo_plugin.util.errors import ConfigurationError

__all__ = ["DumpOptions", "DumpSummary", "dump_embeddings", "sentence_key"]

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

    # Raises

    `ConfigurationError`
        If the input is empty, the output cannot be written (see `DumpFile`) or was begun with
        another text, or vectors are not finite.
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
        for group in sentence_groups(sentences, options.batch_size):
            embedded = embed_sentences(bilm, [words for _, words in group], options.batch_size)
            for (line_number, words), layers in zip(group, embedded):
                key = sentence_key(words) if options.sentence_keys else str(line_number - 1)
                if key:
                    file.add(key, _vectors(layers, options, f"{input_path}:{line_number}"))
                on_progress(1)
            file.commit(text.num_lines, text.sha256)
        num_datasets = file.finish(str(input_path), text.sentence_to_index)
    return DumpSummary(text.num_lines, text.num_tokens, num_datasets, num_resumed)


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
