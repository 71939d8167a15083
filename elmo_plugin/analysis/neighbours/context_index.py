import hashlib
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy

from elmo_plugin.bilm import Bilm, fingerprint
from elmo_plugin.elmo.store.rows import RowFile, Store, check_types, read_state
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.weight_state import WeightState

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


class ContextIndex:
    """
    The contexts of a text, in a folder that `build_index` has finished. All files are
    memory-mapped, so memory does not grow with the index. Raises `ConfigurationError` if the folder
    holds no index, or an unfinished or damaged one.

    `index.json` names the biLM, the layers and the sizes. `layer_1.npy` and so on hold one vector
    per context, of length 1, in half precision. `contexts.npy` and `sentences.npy` say where each
    context is in `text.txt`, which has one sentence per line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: The content of `index.json`.
        self.settings = _read_settings(folder)
        #: By number of the layer: shape `(num_contexts, dim)`, half precision.
        self.layers: Dict[int, numpy.ndarray] = {
            layer: file.mapped(folder, self.settings)
            for layer, file in _layer_files(self.settings).items()
        }
        self._contexts, self._sentences, self._text = (
            file.mapped(folder, self.settings) for file in (_CONTEXTS, _SENTENCES, _TEXT)
        )
        self._checked: Optional[Tuple[Tuple[Bilm, int], WeightState]] = None

    @property
    def num_contexts(self) -> int:
        return self.settings["num_contexts"]

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
