import os
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union

import numpy
import torch

from elmo_plugin.analysis.neighbours.context_index import (
    FORMAT_VERSION,
    IndexWriter,
    bilm_settings,
)
from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import weights_type
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.token_batches import Sentence, sentence_groups
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded, is_pipe

_Path = Union[str, os.PathLike]


@dataclass(frozen=True)
class IndexOptions:
    """The settings of `build_index`."""

    #: Numbers of the layers. By default all but the token layer (0), in which all occurrences of
    #: a word have the same vector.
    layers: Optional[Sequence[int]] = None
    #: Index the occurrences of these words only, in exactly this spelling. By default every token.
    words: Optional[Sequence[str]] = None
    batch_size: int = 64


@dataclass(frozen=True)
class IndexSummary:
    """The result of `build_index`. An earlier call had done `num_resumed` of the lines."""

    num_lines: int
    num_contexts: int
    num_resumed: int


def build_index(
    bilm: Bilm,
    text: Sequence[_Path],
    folder: _Path,
    options: IndexOptions,
    force: bool = False,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> IndexSummary:
    """
    Writes an index of the contexts of a text: a folder for `ContextIndex`. It takes
    `2 * num_layers * dim + 24` bytes per context, and the sentences. `text` names files, folders or
    patterns (see `find_shards`) with one sentence per line; lines are numbered through all files.
    For `folder` and `force` see `IndexWriter`. `on_progress` is called with the number of lines
    done since the last call.

    After a kill, the same call continues after the last commit and ends with the same files; see
    `sentence_groups`. Memory grows only with `batch_size` and the longest line.

    Raises `ConfigurationError` if the text holds no context, is in the folder or cannot be read
    twice; if the folder cannot be written (see `Store`) or was begun with another text; if the biLM
    has no such layer, is stateful (vectors must not depend on earlier sentences), or gives vectors
    that are not finite.
    """
    folder = expanded(folder)
    settings = _settings(bilm, options)
    lines = _Lines(text, folder, options)
    # Checked before the folder is created.
    if next(lines.with_contexts(lines.sentences()), None) is None:
        words = options.words
        what = "words" if words is None else f"occurrences of {', '.join(sorted(words))}"
        raise ConfigurationError(
            f"{', '.join(map(str, text))}: expected {what}, found none in {lines.num_lines} lines."
        )
    lines = _Lines(text, folder, options)
    with closing(IndexWriter(folder, settings, force)) as writer:
        num_resumed = num_reported = writer.state["num_lines"]
        sentences = lines.sentences()
        lines.skip(sentences, num_resumed, writer.state["text_sha256"], folder)
        on_progress(num_resumed)
        for group in sentence_groups(lines.with_contexts(sentences), options.batch_size):
            _add_group(bilm, group, lines, writer, options.batch_size)
            writer.commit(num_lines=lines.num_lines, text_sha256=lines.sha256, complete=False)
            on_progress(lines.num_lines - num_reported)
            num_reported = lines.num_lines
        writer.commit(num_lines=lines.num_lines, text_sha256=lines.sha256, complete=True)
        return IndexSummary(lines.num_lines, writer.state["num_contexts"], num_resumed)


class _Lines(DigestedText):
    """The text, and which of its words are contexts."""

    def __init__(self, text: Sequence[_Path], folder: _Path, options: IndexOptions) -> None:
        paths = find_shards(list(text))
        for path in paths:
            if is_pipe(path):
                raise ConfigurationError(f"{path} can be read only once. Write it to a file first.")
            if os.path.realpath(os.path.dirname(path)) == os.path.realpath(folder):
                raise ConfigurationError(f"{path} is in {folder}; name another folder.")
        super().__init__(paths)
        self._chosen = None if options.words is None else frozenset(options.words)

    def with_contexts(self, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
        """The sentences that have contexts."""
        return ((number, words) for number, words in sentences if self.positions(words))

    def positions(self, words: Sequence[str]) -> List[int]:
        """The positions of the contexts in a sentence."""
        chosen = self._chosen
        return [place for place, word in enumerate(words) if chosen is None or word in chosen]


def _add_group(
    bilm: Bilm, group: List[Sentence], lines: _Lines, writer: IndexWriter, batch_size: int
) -> None:
    embedded = embed_sentences(bilm, [words for _, words in group], batch_size)
    for (number, words), layers in zip(group, embedded):
        positions = lines.positions(words)
        chosen = layers[writer.state["layers"]][:, positions]
        writer.add(number, words, positions, _unit_vectors(chosen, f"line {number} of the text"))


def _unit_vectors(layers: torch.Tensor, location: str) -> numpy.ndarray:
    """Shape: `(num_layers, num_contexts, dim)`."""
    vectors = layers.float().numpy()
    if not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"{location}: expected finite vectors, found NaN or infinity. The biLM's weights are "
            "damaged."
        )
    # Shape: (num_layers, num_contexts, 1)
    norms = numpy.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / numpy.maximum(norms, numpy.finfo("f4").tiny)).astype("<f2")


def _settings(bilm: Bilm, options: IndexOptions) -> Dict[str, Any]:
    if bilm.stateful:
        raise ConfigurationError("`build_index` needs a biLM that is not stateful.")
    layers = sorted(set(range(1, bilm.num_layers) if options.layers is None else options.layers))
    unknown = sorted(set(layers) - set(range(bilm.num_layers)))
    if unknown:
        raise ConfigurationError(
            f"Expected layers from 0 (the token layer) to {bilm.num_layers - 1}, found "
            f"{unknown[0]}."
        )
    return {
        "format_version": FORMAT_VERSION,
        **bilm_settings(bilm),
        "computed_in": weights_type(bilm),
        "computed_on": next(bilm.parameters()).device.type,
        "layers": layers,
        "dim": bilm.output_dim,
        "words": None if options.words is None else sorted(set(options.words)),
        "batch_size": options.batch_size,
    }
