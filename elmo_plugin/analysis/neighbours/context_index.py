import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.weight_state import WeightState

FORMAT_VERSION = 1
INDEX_FILE = "index.json"
TEXT_FILE = "text.txt"
# Columns: number of the sentence in the text file, position in it, `key_of` the word.
CONTEXTS_FILE, CONTEXT_COLUMNS = "contexts.npy", 3
# Columns: number of the line in the text that was indexed, from 1; offset of the sentence's end in
# the text file, in bytes; number of its last context plus 1; `key_of` its words.
SENTENCES_FILE, SENTENCE_COLUMNS = "sentences.npy", 4

#: What `index.json` says about the work done, before the first sentence.
START = {
    "num_lines": 0,
    "num_sentences": 0,
    "num_contexts": 0,
    "num_bytes": 0,
    "text_sha256": "",
    "complete": False,
}
# Its other fields, with values of their types.
_SETTINGS = {"layers": [], "dim": 0, "bilm_fingerprint": "", "warm_up": False, "computed_in": ""}


class ContextIndex:
    """
    The contexts of a text on the disk: a folder that `build_index` has finished. Everything is
    memory-mapped: memory does not grow with the index.

    `index.json` names the biLM, the layers and the sizes; `layer_1.npy` and so on hold a vector per
    context, of length 1 and in half precision; `contexts.npy` and `sentences.npy` say where each
    context is in `text.txt`, which has the sentences, one per line.

    # Parameters

    folder : `Path`

    # Raises

    `ConfigurationError`
        If the folder holds no index, or an unfinished or damaged one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: The content of `index.json`.
        self.settings = read_settings(folder)
        if not self.settings["complete"]:
            raise ConfigurationError(
                f"{folder} is not finished: {self.settings['num_lines']} lines are done. Run the "
                "command that builds it again; it continues where it stopped."
            )
        num_contexts, num_sentences = self.num_contexts, self.settings["num_sentences"]
        #: By number of the layer: shape `(num_contexts, dim)`, half precision.
        self.layers: Dict[int, numpy.ndarray] = {
            layer: self._mapped(layer_file(layer), (num_contexts, self.settings["dim"]))
            for layer in self.settings["layers"]
        }
        self._contexts = self._mapped(CONTEXTS_FILE, (num_contexts, CONTEXT_COLUMNS))
        self._sentences = self._mapped(SENTENCES_FILE, (num_sentences, SENTENCE_COLUMNS))
        try:
            self._text = open(folder / TEXT_FILE, "rb")
        except OSError as error:
            raise damaged(folder, f"{TEXT_FILE} cannot be read") from error
        if self._text.seek(0, os.SEEK_END) != self.settings["num_bytes"]:
            self._text.close()
            raise damaged(folder, f"{TEXT_FILE} has not the size that {INDEX_FILE} says")
        self._checked: Optional[Tuple[Tuple[Bilm, int], WeightState]] = None

    @property
    def num_contexts(self) -> int:
        """The number of contexts, that is, of tokens of the text."""
        return self.settings["num_contexts"]

    def check_bilm(self, bilm: Bilm) -> None:
        """Raises `ConfigurationError` unless the index was built with this biLM."""
        # Hashing the weights of a large biLM takes longer than a search.
        known, weights = (bilm, bilm.weights_version), list(bilm.parameters())
        if self._checked and self._checked[0] == known and self._checked[1].is_current(weights):
            return
        expected = {name: self.settings[name] for name in ("bilm_fingerprint", "warm_up")}
        if bilm_settings(bilm) != expected:
            raise ConfigurationError(
                f"{self.folder} was built with another biLM, computed in "
                f"{self.settings['computed_in']}. Name its options, its weights and its type "
                "(--options-file, --weight-file, --bfloat16), or build an index with this biLM."
            )
        self._checked = known, WeightState(weights)

    def context(self, row: int) -> Tuple[int, int, Tuple[str, ...]]:
        """The line of a context in the indexed text, from 1, its position, and the sentence."""
        sentence, position, _ = self._contexts[row].tolist()
        return int(self._sentences[sentence, 0]), position, self._words(sentence)

    def rows_of_word(self, word: str) -> numpy.ndarray:
        """The contexts of a word, in their order."""
        return numpy.flatnonzero(self._contexts[:, 2] == key_of([word]))

    def rows_of_sentence(self, words: Sequence[str]) -> List[Tuple[int, int]]:
        """First and last (exclusive) context of each occurrence of a sentence in the text."""
        found = numpy.flatnonzero(self._sentences[:, 3] == key_of(words)).tolist()
        ends = self._sentences[:, 2]
        return [
            (int(ends[number - 1]) if number else 0, int(ends[number]))
            for number in found
            if self._words(number) == tuple(words)
        ]

    def close(self) -> None:
        """Closes the files of the index."""
        self._text.close()

    def _words(self, sentence: int) -> Tuple[str, ...]:
        start = int(self._sentences[sentence - 1, 1]) if sentence else 0
        self._text.seek(start)
        line = self._text.read(int(self._sentences[sentence, 1]) - start)
        return tuple(line.decode("utf-8").split())

    def _mapped(self, name: str, shape: Tuple[int, int]) -> numpy.ndarray:
        try:
            # Copy on write: torch warns of read-only arrays. Nothing is written.
            array = numpy.load(self.folder / name, mmap_mode="c", allow_pickle=False)
        # A damaged header can cause any exception.
        except Exception as error:
            raise damaged(self.folder, f"{name} cannot be read") from error
        if array.shape != shape:
            raise damaged(self.folder, f"{name} has the shape {array.shape} instead of {shape}")
        return array


def layer_file(layer: Union[int, str]) -> str:
    """The name of the file of a layer, or the pattern of all of them for `*`."""
    return f"layer_{layer}.npy"


def key_of(words: Sequence[str]) -> int:
    """A hash of 64 bits."""
    digest = hashlib.blake2b(" ".join(words).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def bilm_settings(bilm: Bilm) -> Dict[str, Any]:
    """The settings on which the vectors of a biLM depend."""
    return {"bilm_fingerprint": fingerprint(bilm), "warm_up": bilm.warm_up}


def read_settings(folder: Path) -> Dict[str, Any]:
    """The content of `index.json`; for errors see `ContextIndex`."""
    path = folder / INDEX_FILE
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        version = settings["format_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise ConfigurationError(
            f"{folder} is no index of contexts: it has no {INDEX_FILE}. Expected a folder that "
            "`elmo neighbours build` wrote."
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(folder, f"{INDEX_FILE} cannot be read") from error
    if version != FORMAT_VERSION:
        raise ConfigurationError(
            f"{folder} has the format {version} of another version of elmo_plugin, expected "
            f"{FORMAT_VERSION}. Build it again."
        )
    for name, value in {**START, **_SETTINGS}.items():
        if type(settings.get(name)) is not type(value):
            raise damaged(folder, f"{name!r} in {INDEX_FILE} is missing or of another type")
    return settings


def damaged(folder: Path, reason: str) -> ConfigurationError:
    """The error for files in a state that a killed process cannot have left."""
    return ConfigurationError(
        f"{folder} is damaged: {reason}. Build it again, with --force to replace it."
    )
