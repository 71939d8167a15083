import hashlib
import json
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Callable, Iterable, NamedTuple, Sequence, Tuple

import numpy

from elmo_plugin.analysis.representations import Representation
from elmo_plugin.elmo.store.rows import RowFile, Store
from elmo_plugin.elmo.token_batches import groups
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded

# Must change with the layout of the files or the computation of rows.
_FORMAT = "elmo_plugin features 1"
# Maximum work between two commits, which is lost if the process is killed.
_SENTENCES_PER_COMMIT, _WORDS_PER_COMMIT = 1024, 32_768


class SpannedSentence(NamedTuple):
    """A sentence, and the spans `(start, end)` of words that get a vector; `end` is exclusive."""

    words: Sequence[str]
    spans: Sequence[Tuple[int, int]]


@dataclass(frozen=True)
class Features:
    """The vectors of the spans of a text, in order."""

    #: Its name is a hash of representation and text.
    folder: Path
    num_rows: int
    #: Width of a layer.
    dim: int

    def layer(self, number: int) -> numpy.ndarray:
        """The memory-mapped vectors of a layer: shape `(num_rows, dim)`, half precision."""
        return _layer_file(number, self.dim).mapped(self.folder, {"num_rows": self.num_rows})


def compute_features(
    representation: Representation,
    texts: Iterable[SpannedSentence],
    folder: Path,
    on_progress: Callable[[int], object] = lambda num_sentences: None,
) -> Features:
    """
    Computes vectors of spans of words in half precision. A sub-folder of `folder` gets one file per
    layer. The vector of a span is the mean of its words' vectors. `texts` are iterated twice.
    `folder` is created if needed; any number of texts can share it. `on_progress` is called with
    the number of sentences done since the last call, first with those of an earlier call.

    If the sub-folder already has the vectors of this representation and text, nothing is computed.
    After a kill, the same call continues after the last commit and gives the same files: each
    commit ends a group of sentences that are embedded together. Memory grows only with the longest
    sentence. A row takes `2 * num_layers * dim` bytes on the disk.

    Raises `ConfigurationError` if there are no spans, another process computes the same vectors,
    files are damaged, or vectors are not finite. What was done is kept.
    """
    path = expanded(folder) / _key(representation, texts)
    dim = representation.dim
    files = [_layer_file(number, dim) for number in range(len(representation.layers))]
    start = {"num_sentences": 0, "complete": False}
    with closing(Store(path, files, {}, start, force=False)) as store:
        done = store.state["num_sentences"]
        on_progress(done)
        if not store.state["complete"]:
            for group in groups(
                islice(iter(texts), done, None),
                lambda text: len(text.words),
                _SENTENCES_PER_COMMIT,
                _WORDS_PER_COMMIT,
            ):
                embedded = representation.embed([text.words for text in group])
                for text, layers in zip(group, embedded):
                    for file, rows in zip(files, _rows(layers, text.spans)):
                        store.append(file.name, rows)
                store.commit(num_sentences=store.state["num_sentences"] + len(group))
                on_progress(len(group))
            store.commit(complete=True)
        num_rows = store.state["num_rows"]
    if not num_rows:
        raise ConfigurationError("Expected a text with words to compute vectors of, found none.")
    return Features(path, num_rows, dim)


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


def _layer_file(number: int, dim: int) -> RowFile:
    return RowFile(f"layer_{number}.float16", "<f2", dim, "num_rows")
