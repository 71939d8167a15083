"""Writes the layers of a biLM over a text file into one HDF5 file: `allennlp elmo`."""

import hashlib
import json
import os
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy
import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.corpora.sentence_per_line import read_sentences
from elmo_plugin.elmo.dump.dump_file import DumpFile
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path

__all__ = ["DumpOptions", "DumpSummary", "bilm_identity", "dump_embeddings", "sentence_key"]

# Between two commits: what a kill costs at most, and how many vectors memory holds.
_BATCHES_PER_COMMIT = 16
_TOKENS_PER_COMMIT = 32_768

# HDF5 reads a slash as a folder and ends a name at NUL.
_NOT_IN_KEYS = str.maketrans({"/": "\u2215", "\0": "\u2400"})


@dataclass(frozen=True)
class DumpOptions:
    """
    What `dump_embeddings` writes.

    # Parameters

    layers : `str`, optional (default = `"all"`)
        `all`, the `top` layer only, or the `average` of all.
    dtype : `str`, optional (default = `"float32"`)
        `float32`, or `float16` for half the size.
    compression : `Optional[str]`, optional (default = `None`)
        `gzip`, or `lzf`, which is faster and only h5py reads.
    batch_size : `int`, optional (default = `64`)
        Sentences per batch.
    sentence_keys : `bool`, optional (default = `False`)
        Name datasets by `sentence_key` instead of by line.
    forget_sentences : `bool`, optional (default = `False`)
        Leave out the map from sentences to lines, which grows with the text.
    decoding_errors : `str`, optional (default = `"strict"`)
        What becomes of bytes that are not UTF-8, see `read_sentences`.
    """

    layers: str = "all"
    dtype: str = "float32"
    compression: Optional[str] = None
    batch_size: int = 64
    sentence_keys: bool = False
    forget_sentences: bool = False
    decoding_errors: str = "strict"


@dataclass(frozen=True)
class DumpSummary:
    """
    What `dump_embeddings` wrote.

    # Parameters

    num_lines, num_tokens, num_datasets : `int`
        Of the whole file. There are fewer datasets than lines only when sentences are keys.
    num_resumed : `int`
        Lines that an earlier call had done.
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
    identity: Dict[str, str],
    force: bool = False,
    on_progress: Callable[[int], None] = lambda num_lines: None,
) -> DumpSummary:
    """
    Writes one HDF5 dataset per line of a text file: `(num_layers, num_tokens, output_dim)`, or
    `(num_tokens, output_dim)` for one layer or the average. An empty line gives an empty dataset.

    Works on `OUTPUT.unfinished` and renames it at the end. Called again after it was killed, it
    goes on after the last commit and ends with the same file as if it had been left alone:
    commits stand between groups of lines that are embedded together, and the groups depend on
    the text and the options only, so every sentence meets the same batch. The lines done are read
    once more, to see that they are the same.

    Memory grows with `batch_size`, with the longest line, and, unless forgotten or used as keys,
    with the distinct sentences: the map from sentences to lines is a single JSON string.

    # Parameters

    bilm : `Bilm`
        Must not be stateful.
    input_path, output_path : `Union[str, os.PathLike]`
        See `read_sentences`; the folder of the output is made.
    options : `DumpOptions`
    identity : `Dict[str, str]`
        Written into the file; what was begun with another one is not continued. See
        `bilm_identity`.
    force : `bool`, optional (default = `False`)
        Replace a finished output, and an unfinished one that cannot be continued.
    on_progress : `Callable[[int], None]`
        Told how many more lines are done.

    # Raises

    `ConfigurationError`
        If the input is empty, if the output is finished already, was begun with other options,
        another biLM or another text, is being written by another process, or if vectors are not
        finite numbers.
    `ValueError`
        If a line is not UTF-8 and `decoding_errors` is strict.
    `OSError`
        If reading or writing fails. What was done is kept.
    """
    if os.path.exists(output_path) and os.path.exists(input_path):
        if os.path.samefile(input_path, output_path):
            raise ConfigurationError(f"{output_path} is the input; name another output.")
    text = _Text(input_path, options)
    sentences = text.sentences()
    first = next(sentences, None)
    if first is None:
        raise ConfigurationError(f"{input_path} is empty; expected a sentence per line.")
    sentences = chain([first], sentences)
    with DumpFile(Path(output_path), _settings(bilm, options, identity), force) as file:
        num_resumed = file.num_lines
        _skip(text, sentences, file)
        on_progress(num_resumed)
        for group in _groups(sentences, options.batch_size):
            embedded = embed_sentences(bilm, [words for _, words in group], options.batch_size)
            for (line_number, words), layers in zip(group, embedded):
                key = sentence_key(words) if options.sentence_keys else str(line_number - 1)
                if key and not (options.sentence_keys and key in file):
                    place = f"{input_path}:{line_number}"
                    file.add(key, _vectors(layers, options, place), options.compression)
                on_progress(1)
            file.commit(text.num_lines, text.hexdigest())
        num_datasets = file.num_datasets
        file.finish(str(input_path), text.sentence_to_index)
    return DumpSummary(text.num_lines, text.num_tokens, num_datasets, num_resumed)


def bilm_identity(bilm: Bilm, weight_file: Union[str, os.PathLike]) -> Dict[str, str]:
    """
    What tells a biLM from another, whatever its files are called.

    # Parameters

    bilm : `Bilm`
        Gives the options.
    weight_file : `Union[str, os.PathLike]`
        What its weights were read from: a file, an archive or the folder of a run, local or a URL.

    # Returns

    `Dict[str, str]`
        `bilm_options`, as JSON, and `bilm_sha256`, over them and the bytes of the weight file.
    """
    source = bilm.options.source
    digest = hashlib.sha256(json.dumps(source, sort_keys=True).encode())
    # The words of token embeddings are too many for an attribute of a file.
    shape = {name: value for name, value in source.items() if name != "vocabulary"}
    path = str(local_path(weight_file))
    if os.path.isdir(path):
        # Of a training run; AllenNLP calls them one or the other.
        names = [os.path.join(path, name) for name in ("weights.th", "best.th")]
        path = next(filter(os.path.exists, names), names[0])
    with open(path, "rb") as weights:
        while block := weights.read(1 << 20):
            digest.update(block)
    return {"bilm_options": json.dumps(shape, sort_keys=True), "bilm_sha256": digest.hexdigest()}


def sentence_key(words: Sequence[str]) -> str:
    """
    The name of a sentence's dataset when sentences are keys: its words joined by one space, with
    what HDF5 cannot have in a name replaced: `/` by `∕` (U+2215), NUL by `␀` (U+2400), and a
    sentence that is only a full stop by `․` (U+2024). Empty for a sentence of no words.
    """
    key = " ".join(words).translate(_NOT_IN_KEYS)
    return "\u2024" if key == "." else key


class _Text:
    """Reads sentences and keeps what has to be known of those read so far."""

    def __init__(self, path: Union[str, os.PathLike], options: DumpOptions) -> None:
        self._path = path
        self._errors = options.decoding_errors
        self._digest = hashlib.sha256()
        remember = not (options.sentence_keys or options.forget_sentences)
        self.sentence_to_index: Optional[Dict[str, str]] = {} if remember else None
        self.num_lines = 0
        self.num_tokens = 0

    def sentences(self) -> Iterator[Tuple[int, Tuple[str, ...]]]:
        for line_number, words in read_sentences(self._path, errors=self._errors):
            sentence = " ".join(words)
            self._digest.update(f"{sentence}\n".encode())
            self.num_lines, self.num_tokens = line_number, self.num_tokens + len(words)
            if self.sentence_to_index is not None:
                self.sentence_to_index.setdefault(sentence, str(line_number - 1))
            yield line_number, words

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _skip(text: _Text, sentences: Iterator[Tuple[int, Tuple[str, ...]]], file: DumpFile) -> None:
    for _ in islice(sentences, file.num_lines):
        pass
    if file.num_lines and text.hexdigest() != file.text_sha256:
        raise ConfigurationError(
            f"{file.unfinished} holds {file.num_lines} lines of another text: the first lines of "
            "the input are not the same. Give the same input, another output, or --force to "
            "begin anew."
        )


def _groups(
    sentences: Iterator[Tuple[int, Tuple[str, ...]]], batch_size: int
) -> Iterator[List[Tuple[int, Tuple[str, ...]]]]:
    group: List[Tuple[int, Tuple[str, ...]]] = []
    num_tokens = 0
    for line_number, words in sentences:
        group.append((line_number, words))
        num_tokens += len(words)
        if len(group) == _BATCHES_PER_COMMIT * batch_size or num_tokens >= _TOKENS_PER_COMMIT:
            yield group
            group, num_tokens = [], 0
    if group:
        yield group


def _vectors(layers: torch.Tensor, options: DumpOptions, place: str) -> numpy.ndarray:
    layers = layers.float()
    if options.layers == "top":
        layers = layers[-1]
    elif options.layers == "average":
        layers = layers.mean(dim=0)
    with numpy.errstate(over="ignore"):
        vectors = layers.numpy().astype(options.dtype)
    if not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"{place}: expected finite vectors, found NaN or a number too large for "
            f"{options.dtype}. The biLM's weights are damaged, or it needs float32."
        )
    return vectors


def _settings(bilm: Bilm, options: DumpOptions, identity: Dict[str, str]) -> Dict[str, Any]:
    weight = next(bilm.parameters())
    return {
        "layers": options.layers,
        "dtype": options.dtype,
        "compression": options.compression or "none",
        "batch_size": options.batch_size,
        "sentence_keys": options.sentence_keys,
        "forget_sentences": options.forget_sentences,
        "computed_in": str(weight.dtype).replace("torch.", ""),
        "computed_on": weight.device.type,
        **identity,
    }
