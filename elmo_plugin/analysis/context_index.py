"""The index of the contexts of a text: a folder of vectors and of where they are in the text."""

import hashlib
import os
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
from elmo_plugin.util.files import expanded, is_pipe
from elmo_plugin.util.tensors import WeightState
from elmo_plugin.util.text_files import FilePath, language_of

FORMAT_VERSION = 1
_INDEX_FILE = "index.json"
_TEXT = RowFile("text.txt", "u1", 1, "num_bytes")
# Columns: number of the sentence in the text file, position in it, `_key_of` the word.
_CONTEXTS = RowFile("contexts.npy", "<i8", 3, "num_contexts")
# Columns: number of the line in the text that was indexed, from 1; offset of the sentence's end in
# the text file, in bytes; number of its last context plus 1; `_key_of` its words.
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
    words: Optional[Sequence[str]] = None,
    batch_size: int = 64,
    force: bool = False,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> IndexSummary:
    """
    Writes an index of the contexts of a text: a folder for `ContextIndex`. It takes
    `2 * num_layers * dim + 24` bytes per context, and the sentences. `text` names files, folders or
    patterns (see `find_shards`) with one sentence per line; lines are numbered through all files.
    `layers` are numbers of layers, by default all but the token layer (0), in which all occurrences
    of a word have the same vector. `words` limits the index to their occurrences, in exactly this
    spelling. For `folder` and `force` see `IndexWriter`. `on_progress` is called with the number of
    lines done since the last call.

    After a kill, the same call continues after the last commit and ends with the same files; see
    `sentence_groups`. Memory grows only with `batch_size` and the longest line.

    Raises `ConfigurationError` if the text holds no context, is in the folder or cannot be read
    twice; if the folder cannot be written (see `Store`) or was begun with another text; if the biLM
    has no such layer, is stateful (vectors must not depend on earlier sentences), or gives vectors
    that are not finite.
    """
    folder = expanded(folder)
    settings = _new_settings(bilm, layers, words, batch_size)
    paths = _texts(text, folder)
    settings["tokenize"] = language_of(paths[0])
    chosen = None if words is None else frozenset(words)

    def positions(sentence: Sequence[str]) -> List[int]:
        return [n for n, word in enumerate(sentence) if chosen is None or word in chosen]

    whole, lines = DigestedText(paths), DigestedText(paths)
    # Checked before the folder is created.
    if not any(positions(sentence) for _, sentence in whole.sentences()):
        what = "words" if words is None else f"occurrences of {', '.join(sorted(words))}"
        raise ConfigurationError(
            f"{', '.join(map(str, text))}: expected {what}, found none in {whole.num_lines} lines."
        )
    with closing(IndexWriter(folder, settings, force)) as writer:
        num_resumed = num_reported = writer.state["num_lines"]
        sentences = lines.sentences()
        lines.skip(sentences, num_resumed, writer.state["text_sha256"], folder)
        on_progress(num_resumed)
        with_contexts = (each for each in sentences if positions(each[1]))
        for group in sentence_groups(with_contexts, batch_size):
            embedded = embed_sentences(bilm, [sentence for _, sentence in group], batch_size)
            for (number, sentence), all_layers in zip(group, embedded):
                places = positions(sentence)
                vectors = _unit_vectors(all_layers[settings["layers"]][:, places], number)
                writer.add(number, sentence, places, vectors)
            writer.commit(num_lines=lines.num_lines, text_sha256=lines.sha256, complete=False)
            on_progress(lines.num_lines - num_reported)
            num_reported = lines.num_lines
        writer.commit(num_lines=lines.num_lines, text_sha256=lines.sha256, complete=True)
        return IndexSummary(lines.num_lines, writer.state["num_contexts"], num_resumed)


def _new_settings(
    bilm: Bilm, layers: Optional[Sequence[int]], words: Optional[Sequence[str]], batch_size: int
) -> Dict[str, Any]:
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
        "words": None if words is None else sorted(set(words)),
        "batch_size": batch_size,
    }


def _texts(text: Sequence[FilePath], folder: Path) -> List[Any]:
    """The files of the text, which must not be in the index's folder."""
    paths = find_shards(list(text))
    for path in paths:
        if is_pipe(path):
            raise ConfigurationError(f"{path} can be read only once. Write it to a file first.")
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
        self._layers = _layer_files(settings)
        files = [*self._layers.values(), _CONTEXTS, _SENTENCES, _TEXT]
        start = {"num_lines": 0, "text_sha256": "", "complete": False}
        super().__init__(folder, files, settings, start, force, anew=force)
        for old in set(folder.glob("layer_*.npy")) - {folder / file.name for file in files}:
            old.unlink()

    def add(
        self, line: int, words: Sequence[str], positions: Sequence[int], layers: numpy.ndarray
    ) -> None:
        """Adds a sentence and its contexts' unit vectors: `(num_layers, num_contexts, dim)`."""
        sentence = self.num_rows(_SENTENCES.name)
        contexts = [(sentence, position, _key_of([words[position]])) for position in positions]
        for file, vectors in zip(self._layers.values(), layers):
            self.append(file.name, vectors)
        self.append(_CONTEXTS.name, numpy.array(contexts))
        self.append(_TEXT.name, f"{' '.join(words)}\n".encode())
        ends = (self.num_rows(_TEXT.name), self.num_rows(_CONTEXTS.name))
        self.append(_SENTENCES.name, numpy.array([(line, *ends, _key_of(words))]))


def _unit_vectors(layers: torch.Tensor, line: int) -> numpy.ndarray:
    """Vectors of length 1 and the same shape, `(num_layers, num_contexts, dim)`."""
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
    per context, of length 1, in half precision. `contexts.npy` and `sentences.npy` say where each
    context is in `text.txt`, which has one sentence per line.
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
        self._contexts, self._sentences, self._text = (
            file.mapped(self.folder, self.settings) for file in (_CONTEXTS, _SENTENCES, _TEXT)
        )
        self._checked: Optional[Tuple[Tuple[Bilm, int], WeightState]] = None

    def check_bilm(self, bilm: Bilm) -> None:
        """Raises `ConfigurationError` unless the index was built with this biLM."""
        # Hashing the weights of a large biLM takes longer than a search.
        known, weights = (bilm, bilm.weights_version), list(bilm.parameters())
        if self._checked and self._checked[0] == known and self._checked[1].is_current(weights):
            return
        if any(self.settings.get(name) != value for name, value in bilm_settings(bilm).items()):
            raise ConfigurationError(
                f"{self.folder} was built with another biLM, computed in "
                f"{self.settings['computed_in']}. Name its options, its weights and its type "
                "(--options-file, --weight-file, --bfloat16), or build an index with this biLM."
            )
        self._checked = known, WeightState(weights)

    def context(self, row: int) -> Tuple[int, int, Tuple[str, ...]]:
        """The line of a context in the text (from 1), its position, and its sentence."""
        sentence, position, _ = self._contexts[row].tolist()
        return int(self._sentences[sentence, 0]), position, self._words(sentence)

    def rows_of_word(self, word: str) -> numpy.ndarray:
        """The rows of a word's contexts, ascending."""
        return numpy.flatnonzero(self._contexts[:, 2] == _key_of([word]))

    def rows_of_sentence(self, words: Sequence[str]) -> List[Tuple[int, int]]:
        """The first and last (exclusive) row of each occurrence of a sentence in the text."""
        found = numpy.flatnonzero(self._sentences[:, 3] == _key_of(words)).tolist()
        return [
            self._range(sentence, column=2)
            for sentence in found
            if self._words(sentence) == tuple(words)
        ]

    def close(self) -> None:
        """Releases the mapped files."""
        self.layers.clear()
        del self._contexts, self._sentences, self._text

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
    """A hash of 64 bits."""
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
    for layer in settings["layers"]:
        check_types(path, {"layers": layer}, {"layers": 0})
    if not settings["complete"]:
        raise ConfigurationError(
            f"{folder} is not finished: {settings['num_lines']} lines are done. Run the command "
            "that builds it again; it continues where it stopped."
        )
    return settings
