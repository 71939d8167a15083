"""The index of the contexts of a text: a folder of vectors and of where they are in the text."""

import hashlib
import os
from bisect import bisect_right
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy
import torch

from elmo_plugin.bilm import Bilm, fingerprint, weights_type
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.store.rows import RowFile, Store, check_types, read_state
from elmo_plugin.elmo.token_batches import sentence_groups
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.text_files import FilePath, language_of

FORMAT_VERSION = 2
_INDEX_FILE = "index.json"
_TEXT = RowFile("text.txt", "u1", 1, "num_bytes")
# Columns: number of the line in the text that was indexed, from 1; offset of the sentence's end in
# the text file, in bytes; number of its last vector plus 1; `_key_of` its words.
_SENTENCES = RowFile("sentences.npy", "<i8", 4, "num_sentences")
# What `index.json` has, with values of the same types.
_TYPES = {
    **{name: 0 for name in ("dim", "num_lines", "num_bytes", "num_contexts", "num_sentences")},
    **{"layers": [], "complete": True, "bilm_fingerprint": "", "computed_in": ""},
}


@dataclass(frozen=True)
class IndexSummary:
    """The result of `build_index`. An earlier call had done `num_resumed` of the lines."""

    num_lines: int
    num_contexts: int
    num_resumed: int


def build_index(
    bilm: Bilm,
    text: Sequence[FilePath],
    folder: FilePath,
    layers: Optional[Sequence[int]] = None,
    batch_size: int = 64,
    force: bool = False,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> IndexSummary:
    """
    Writes an index of the contexts of a text: a folder for `ContextIndex`. It takes
    `2 * num_layers * dim` bytes per token, and the sentences. `text` names files, folders or
    patterns (see `find_shards`) with one sentence per line; lines are numbered through all files.
    `layers` are numbers of layers, by default all but the token layer (0), in which all occurrences
    of a word have the same vector. For `folder` and `force` see `IndexWriter`. `on_progress` is
    called with the number of lines done since the last call.

    After a kill, the same call continues after the last commit and ends with the same files; see
    `sentence_groups`. Memory grows only with `batch_size` and the longest line.

    Raises `ConfigurationError` if the text holds no word or is in the folder; if the folder cannot
    be written (see `Store`) or was begun with another text; if the biLM has no such layer, is
    stateful (vectors must not depend on earlier sentences), or gives vectors that are not finite.
    """
    folder = expanded(folder)
    settings = _new_settings(bilm, layers, batch_size)
    paths = _texts(text, folder)
    settings["tokenize"] = language_of(paths[0])
    lines = DigestedText(paths)
    with closing(IndexWriter(folder, settings, force)) as writer:
        num_resumed = num_reported = writer.state["num_lines"]
        sentences = lines.sentences()
        lines.skip(sentences, num_resumed, writer.state["text_sha256"], folder)
        on_progress(num_resumed)
        with_words = (each for each in sentences if each[1])
        for group in sentence_groups(with_words, batch_size):
            embedded = embed_sentences(bilm, [sentence for _, sentence in group], batch_size)
            for (number, sentence), all_layers in zip(group, embedded):
                vectors = _unit_vectors(all_layers[settings["layers"]], number)
                writer.add(number, sentence, vectors)
            writer.commit(num_lines=lines.num_lines, text_sha256=lines.sha256, complete=False)
            on_progress(lines.num_lines - num_reported)
            num_reported = lines.num_lines
        if not writer.state["num_contexts"]:
            raise ConfigurationError(
                f"{', '.join(map(str, text))}: expected words, found none in {lines.num_lines} "
                "lines."
            )
        writer.commit(num_lines=lines.num_lines, text_sha256=lines.sha256, complete=True)
        return IndexSummary(lines.num_lines, writer.state["num_contexts"], num_resumed)


def _new_settings(bilm: Bilm, layers: Optional[Sequence[int]], batch_size: int) -> Dict[str, Any]:
    if bilm.stateful:
        raise ConfigurationError("`build_index` needs a biLM that is not stateful.")
    chosen = sorted(set(range(1, bilm.num_layers) if layers is None else layers))
    unknown = sorted(set(chosen) - set(range(bilm.num_layers)))
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
        "layers": chosen,
        "dim": bilm.output_dim,
        "batch_size": batch_size,
    }


def _texts(text: Sequence[FilePath], folder: Path) -> List[Any]:
    """The files of the text, which must not be in the index's folder."""
    paths = find_shards(list(text))
    for path in paths:
        if os.path.realpath(os.path.dirname(path)) == os.path.realpath(folder):
            raise ConfigurationError(f"{path} is in {folder}; name another folder.")
    return paths


class IndexWriter(Store):
    """
    Writes the folder of a `ContextIndex`. `settings` have `layers` and `dim`. An index with the
    same settings is continued unless `force` is true. For errors see `Store`.
    """

    state_file = _INDEX_FILE

    def __init__(self, folder: Path, settings: Dict[str, Any], force: bool) -> None:
        layers = list(_layer_files(settings).values())
        self._names = [file.name for file in layers]
        files = [*layers, _SENTENCES, _TEXT]
        start = {"num_lines": 0, "text_sha256": "", "complete": False}
        super().__init__(folder, files, settings, start, force, anew=force)

    def add(self, line: int, words: Sequence[str], layers: numpy.ndarray) -> None:
        """Adds a sentence and its words' unit vectors: `(num_layers, num_words, dim)`."""
        for name, vectors in zip(self._names, layers):
            self.append(name, vectors)
        self.append(_TEXT.name, f"{' '.join(words)}\n".encode())
        ends = (self.num_rows(_TEXT.name), self.num_rows(self._names[0]))
        self.append(_SENTENCES.name, numpy.array([(line, *ends, _key_of(words))]))


def _unit_vectors(layers: torch.Tensor, line: int) -> numpy.ndarray:
    """Vectors of length 1 and the same shape, `(num_layers, num_words, dim)`."""
    vectors = layers.float().numpy()
    if not numpy.isfinite(vectors).all():
        raise ConfigurationError(
            f"line {line} of the text: expected finite vectors, found NaN or infinity. The biLM's "
            "weights are damaged."
        )
    norms = numpy.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / numpy.maximum(norms, numpy.finfo("f4").tiny)).astype("<f2")


class ContextIndex:
    """
    The contexts of a text, in a folder that `build_index` has finished. All files are
    memory-mapped, so memory does not grow with the index. Raises `ConfigurationError` if the folder
    holds no index, or an unfinished or damaged one.

    `index.json` names the biLM, the layers and the sizes. `layer_1.npy` and so on hold one vector
    per word, of length 1, in half precision. `sentences.npy` says which of them belong to each
    sentence of `text.txt`, which has one per line.
    """

    def __init__(self, folder: FilePath) -> None:
        self.folder = expanded(folder)
        #: The content of `index.json`.
        self.settings = _read_settings(self.folder)
        #: By number of the layer: shape `(num_contexts, dim)`, half precision.
        self.layers: Dict[int, numpy.ndarray] = {
            layer: file.mapped(self.folder, self.settings)
            for layer, file in _layer_files(self.settings).items()
        }
        self._sentences, self._text = (
            file.mapped(self.folder, self.settings) for file in (_SENTENCES, _TEXT)
        )

    def check_bilm(self, bilm: Bilm) -> None:
        """Raises `ConfigurationError` unless the index was built with this biLM."""
        if any(self.settings.get(name) != value for name, value in bilm_settings(bilm).items()):
            raise ConfigurationError(
                f"{self.folder} was built with another biLM, computed in "
                f"{self.settings['computed_in']}. Name its options, its weights and its type "
                "(--options-file, --weight-file, --bfloat16), or build an index with this biLM."
            )

    def context(self, row: int) -> Tuple[int, int, Tuple[str, ...]]:
        """The line of a context in the text (from 1), its position, and its sentence."""
        sentence = bisect_right(self._sentences[:, 2], row)
        position = row - self._range(sentence, column=2)[0]
        return int(self._sentences[sentence, 0]), position, self._words(sentence)

    def rows_of_sentence(self, words: Sequence[str]) -> List[Tuple[int, int]]:
        """The first and last (exclusive) row of each occurrence of a sentence in the text."""
        found = numpy.flatnonzero(self._sentences[:, 3] == _key_of(words)).tolist()
        return [
            self._range(sentence, column=2)
            for sentence in found
            if self._words(sentence) == tuple(words)
        ]

    def _words(self, sentence: int) -> Tuple[str, ...]:
        start, end = self._range(sentence, column=1)
        return tuple(self._text[start:end].tobytes().decode().split())

    def _range(self, sentence: int, column: int) -> Tuple[int, int]:
        """The end of the previous sentence, and of this one."""
        ends = self._sentences[:, column]
        return int(ends[sentence - 1]) if sentence else 0, int(ends[sentence])


def bilm_settings(bilm: Bilm) -> Dict[str, Any]:
    """The settings on which the vectors of a biLM depend."""
    return {"bilm_fingerprint": fingerprint(bilm), "warm_up": bilm.warm_up}


def _layer_files(settings: Dict[str, Any]) -> Dict[int, RowFile]:
    return {
        layer: RowFile(f"layer_{layer}.npy", "<f2", settings["dim"], "num_contexts")
        for layer in settings["layers"]
    }


def _key_of(words: Sequence[str]) -> int:
    digest = hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _read_settings(folder: Path) -> Dict[str, Any]:
    path = folder / _INDEX_FILE
    if not path.exists():
        raise ConfigurationError(
            f"{folder} is no index of contexts: it has no {_INDEX_FILE}. Expected a folder that "
            "`elmo neighbours build` wrote."
        )
    settings = read_state(path)
    version = settings.get("format_version")
    if version != FORMAT_VERSION:
        raise ConfigurationError(
            f"{folder} has the format {version} of another version of elmo_plugin, expected "
            f"{FORMAT_VERSION}. Build it again."
        )
    check_types(path, settings, _TYPES)
    if not settings["complete"]:
        raise ConfigurationError(
            f"{folder} is not finished: {settings['num_lines']} lines are done. Run the command "
            "that builds it again; it continues where it stopped."
        )
    return settings
