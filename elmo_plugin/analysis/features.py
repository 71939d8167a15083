"""Vectors of words in files, computed once and read many times."""

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, NamedTuple, Sequence, Tuple

import numpy

from elmo_plugin.analysis.representations import Representation
from elmo_plugin.elmo.token_batches import groups
from elmo_plugin.util.atomic_write import write_json
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.folder_lock import lock_folder

# Must change with the layout of the files or the computation of rows.
_FORMAT = "elmo_plugin features 1"
_PROGRESS_FILE = "progress.json"
# Maximum work between two commits, which is lost if the process is killed.
_SENTENCES_PER_COMMIT, _WORDS_PER_COMMIT = 1024, 32_768


class SpannedSentence(NamedTuple):
    """The words of a sentence, and the spans `(start, end)` of words that get a vector."""

    words: Sequence[str]
    spans: Sequence[Tuple[int, int]]


@dataclass(frozen=True)
class Features:
    """The vectors of the spans of a text, in order."""

    #: Its name is a hash of representation and text.
    folder: Path
    #: Spans, layers, and width of a layer.
    num_rows: int
    num_layers: int
    dim: int

    def layer(self, number: int) -> numpy.ndarray:
        """Shape `(num_rows, dim)`, half precision, mapped into memory: not read until used."""
        shape = (self.num_rows, self.dim)
        # Copy on write instead of read-only, of which torch warns. Nothing is written.
        return numpy.memmap(_layer_file(self.folder, number), numpy.float16, "c", shape=shape)


def compute_features(
    representation: Representation,
    texts: Iterable[SpannedSentence],
    folder: Path,
    on_progress: Callable[[int], object] = lambda num_sentences: None,
) -> Features:
    """
    The vectors of spans of words in half precision, one file per layer in a folder of `folder`. The
    vector of a span is the mean of those of its words.

    If the folder has the vectors of this representation and text already, nothing is computed.
    After a kill, the same call continues after the last commit and gives the same files: commits
    are between groups of sentences that are embedded together. RAM grows with the longest sentence
    only; a row takes `2 * num_layers * dim` bytes on the disk.

    # Parameters

    representation : `Representation`
    texts : `Iterable[SpannedSentence]`
        Iterated twice.
    folder : `Path`
        Created if needed. Any number of texts can share it.
    on_progress : `Callable[[int], object]`
        Called with the number of sentences done since the last call; first with those that an
        earlier call of this function has done.

    # Raises

    `ConfigurationError`
        If there are no spans, another process computes the same vectors, or some are not finite.
    `OSError`
        If reading or writing fails. What was done is kept.
    """
    path = expanded(folder) / _key(representation, texts)
    files = [_layer_file(path, number) for number in range(len(representation.layers))]
    lock = lock_folder(path)
    try:
        progress = _progress(path, files, representation.dim)
        on_progress(progress["num_sentences"])
        if not progress["complete"]:
            _write(representation, texts, path, files, progress, on_progress)
    finally:
        os.close(lock)
    if not progress["num_rows"]:
        raise ConfigurationError("Expected a text with words to compute vectors of, found none.")
    return Features(path, progress["num_rows"], len(files), representation.dim)


def _write(
    representation: Representation,
    texts: Iterable[SpannedSentence],
    path: Path,
    files: Sequence[Path],
    progress: Dict[str, Any],
    on_progress: Callable[[int], object],
) -> None:
    """Appends to the files of the layers, from the sentence where `progress` ends."""
    remaining = islice(iter(texts), progress["num_sentences"], None)
    with ExitStack() as stack:
        opened = [stack.enter_context(open(file, "ab")) for file in files]
        for file in opened:
            # Removes what was written after the last commit.
            file.truncate(2 * representation.dim * progress["num_rows"])
        for group in groups(
            remaining, lambda text: len(text.words), _SENTENCES_PER_COMMIT, _WORDS_PER_COMMIT
        ):
            embedded = representation.embed([text.words for text in group])
            for text, layers in zip(group, embedded):
                for file, rows in zip(opened, _rows(layers, text.spans)):
                    file.write(rows.tobytes())
                progress["num_rows"] += len(text.spans)
            for file in opened:
                file.flush()
                os.fsync(file.fileno())
            progress["num_sentences"] += len(group)
            write_json(path / _PROGRESS_FILE, progress)
            on_progress(len(group))
    progress["complete"] = True
    write_json(path / _PROGRESS_FILE, progress)


def _rows(layers: numpy.ndarray, spans: Sequence[Tuple[int, int]]) -> numpy.ndarray:
    """Shape `(num_layers, num_spans, dim)`."""
    rows = numpy.empty((len(layers), len(spans), layers.shape[-1]), dtype=numpy.float16)
    with numpy.errstate(over="ignore"):
        for number, (start, end) in enumerate(spans):
            rows[:, number] = layers[:, start:end].mean(axis=1)
    if not numpy.isfinite(rows).all():
        raise ConfigurationError(
            "Expected finite vectors, found NaN or a number above 65,504, which half precision "
            "cannot represent. The weights or vectors are damaged."
        )
    return rows


def _key(representation: Representation, texts: Iterable[SpannedSentence]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{_FORMAT} {len(representation.layers)} {representation.dim}".encode())
    digest.update(representation.fingerprint.encode())
    for text in texts:
        digest.update(json.dumps([list(text.words), list(text.spans)]).encode())
    return digest.hexdigest()


def _progress(path: Path, files: Sequence[Path], dim: int) -> Dict[str, Any]:
    """The last commit, or a new start if there is none or the files have lost rows since."""
    file = path / _PROGRESS_FILE
    if file.exists():
        progress = json.loads(file.read_text(encoding="utf-8"))
        num_bytes = 2 * dim * progress["num_rows"]
        if all(each.exists() and each.stat().st_size >= num_bytes for each in files):
            return progress
    return {"num_sentences": 0, "num_rows": 0, "complete": False}


def _layer_file(path: Path, number: int) -> Path:
    return path / f"layer_{number}.float16"
