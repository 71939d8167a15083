import json
import math
import os
import shutil
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy

from elmo_plugin.bilm import Bilm, fingerprint, weights_type
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.store.formats import as_strings, format_of
from elmo_plugin.elmo.store.rows import ResumableFile, RowFile, settings_difference
from elmo_plugin.elmo.store.sentence_vectors import (
    DumpOptions,
    EmbeddedSentence,
    SentenceVectors,
    compute_vectors,
)
from elmo_plugin.elmo.token_batches import Sentence, sentence_groups
from elmo_plugin.util.atomic_write import UNFINISHED
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded, is_pipe
from elmo_plugin.util.text_files import find_file, language_of

FORMAT_VERSION = 1
_Path = Union[str, os.PathLike]


@dataclass(frozen=True)
class DumpSummary:
    """Counts for the whole file. An earlier call had done `num_resumed` of the lines."""

    num_lines: int
    num_tokens: int
    num_resumed: int


class DumpFile(ResumableFile):
    """The file of `dump_embeddings`. Until it is written, its rows need the same space again."""

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        self._format = format_of(path)
        # `vectors` has all numbers, `sentences` a JSON list of name, shape and words per line.
        self._vectors = RowFile("vectors", numpy.dtype(settings["dtype"]).str, 1, "num_numbers")
        files = [self._vectors, RowFile("sentences", "u1", 1, "num_bytes")]
        progress = {"num_lines": 0, "text_sha256": ""}
        self._attributes = [*(name for name in settings if settings[name] is not None), *progress]
        super().__init__(path, files, settings, progress, force)

    def add(self, sentences: List[EmbeddedSentence], progress: Dict[str, Any]) -> None:
        """Commits the lines of one group, and `num_lines` and `text_sha256` after them."""
        for name, words, vectors in sentences:
            self.append("vectors", vectors)
            self.append("sentences", f"{json.dumps([name, vectors.shape, words])}\n".encode())
        self.commit(**progress)

    def export(self, input_path: str) -> None:
        """Writes the file. `input_path` becomes an attribute."""
        attributes = {name: self.state[name] for name in self._attributes}
        attributes.update(input=input_path, complete=True, elmo_plugin_version=_version())
        index: Optional[str] = None
        if self._format.has_index and not self.state.get("forget_sentences"):
            names: Dict[str, str] = {}
            # Without the vectors: Windows could not remove their file while it is mapped.
            for name, words in ((each.name, each.words) for each in self._sentences()):
                names.setdefault(" ".join(words), name)
            index = json.dumps(names)
        self.finish(lambda path: self._format.write(path, self._sentences, attributes, index))

    def _sentences(self) -> Iterator[EmbeddedSentence]:
        numbers = self._vectors.mapped(self.folder, self.state)[:, 0]
        end = 0
        with open(self.folder / "sentences", encoding="utf-8") as lines:
            for name, shape, words in map(json.loads, lines):
                start, end = end, end + math.prod(shape)
                yield EmbeddedSentence(name, words, numbers[start:end].reshape(shape))


def dump_embeddings(
    bilm: Bilm,
    input_path: _Path,
    output_path: _Path,
    options: DumpOptions,
    force: bool = False,
    on_progress: Callable[[int], object] = lambda num_lines: None,
    num_workers: int = 0,
) -> DumpSummary:
    """
    Writes the vectors of a text file (see `read_sentences`) in the format of the output's suffix.
    `docs/commands.md` describes the formats. Attributes of the file are the options,
    `bilm_options`, `bilm_fingerprint`, `input`, `tokenize` (the language, if the text is raw),
    `num_lines`, `text_sha256` (of the words), `complete` and versions.

    After a kill, the same call continues after the last commit and ends with the same file; see
    `sentence_groups`. Memory grows with `batch_size`, the longest line, `num_workers` and, unless
    `forget_sentences` is set, the distinct sentences. For `force` see `ResumableFile`.

    `num_workers` processes compute vectors; 0 means this process alone. `on_progress` is called
    with the number of lines done since the last call.

    Raises `ConfigurationError` if the biLM is stateful or lacks a layer, the input is empty, the
    format cannot do what the options ask for, the output cannot be written or was begun with
    another text, vectors are not finite, or a worker is killed; `ImportError` if Parquet needs
    pyarrow; `OSError` if reading or writing fails. The lines done are kept.
    """
    if bilm.stateful:
        raise ConfigurationError("`dump_embeddings` needs a biLM that is not stateful.")
    # Before anything is written, also for a text from a pipe.
    options.numbers(bilm.num_layers)
    output_path = expanded(output_path)
    is_new = is_pipe(input_path) or not os.path.exists(output_path)
    if not is_new and os.path.samefile(find_file(input_path), output_path):
        raise ConfigurationError(f"{output_path} is the input; name another output.")
    format_of(output_path).check(options)
    text = DigestedText([input_path])
    sentences = _within_limits(text, output_path)
    with closing(DumpFile(output_path, _settings(bilm, input_path, options), force)) as file:
        num_resumed = file.state["num_lines"]
        text.skip(sentences, num_resumed, file.state["text_sha256"], file.folder)
        on_progress(num_resumed)
        groups = (
            (group, {"num_lines": text.num_lines, "text_sha256": text.sha256})
            for group in sentence_groups(sentences, options.batch_size)
        )
        vectors = SentenceVectors(bilm, options, str(input_path))
        for embedded, progress in compute_vectors(vectors, groups, num_workers):
            num_new = progress["num_lines"] - file.state["num_lines"]
            file.add(embedded, progress)
            on_progress(num_new)
        if not text.num_lines:
            raise ConfigurationError(f"{input_path} is empty; expected a sentence per line.")
        file.export(str(input_path))
    return DumpSummary(text.num_lines, text.num_tokens, num_resumed)


def finished_dump(
    bilm: Bilm, input_path: _Path, output_path: _Path, options: DumpOptions
) -> Optional[DumpSummary]:
    """
    The summary of a finished file, with all lines as resumed; `None` if there is no such file.
    Raises `ConfigurationError` if the file has another text or other settings.
    """
    output_path = Path(output_path)
    found = format_of(output_path).read_attributes(output_path) if output_path.is_file() else {}
    if not found.get("complete"):
        return None
    text = DigestedText([input_path])
    text.read_all()
    settings = as_strings(_settings(bilm, input_path, options))
    earlier = {"tokenize": None, "pool": None, **found}
    difference = settings_difference(as_strings(earlier), settings)
    if difference or text.sha256 != found["text_sha256"]:
        kind = "with other settings" if difference else "of another text"
        raise ConfigurationError(
            f"{output_path} is finished, {kind}: {difference or f'{input_path} has changed'}. Name "
            "another output, or add --force to replace it."
        )
    return DumpSummary(text.num_lines, text.num_tokens, text.num_lines)


def count_text(input_path: _Path, output_path: _Path) -> Tuple[int, int]:
    """Counts lines and tokens. Raises `ConfigurationError` if the format holds fewer lines."""
    text = DigestedText([input_path])
    for _ in _within_limits(text, Path(output_path)):
        pass
    return text.num_lines, text.num_tokens


def vector_bytes(bilm: Bilm, counts: Tuple[int, int], options: DumpOptions) -> int:
    """The size of the vectors of a text, uncompressed, from what `count_text` has counted."""
    num_lines, num_tokens = counts
    num_layers = len(options.numbers(bilm.num_layers) or [0])
    num_vectors = num_layers * (num_lines if options.pool else num_tokens)
    return num_vectors * bilm.output_dim * numpy.dtype(options.dtype).itemsize


def check_space(outputs: Sequence[_Path], num_bytes: int) -> None:
    """
    Raises `ConfigurationError` if the free disk space is smaller than `num_bytes` minus what an
    unfinished call has written for these files of one folder.
    """
    paths = [Path(os.path.realpath(output)) for output in outputs]
    unfinished = [part for path in paths for part in Path(f"{path}{UNFINISHED}").glob("*")]
    folder = next(parent for parent in paths[0].parents if parent.is_dir())
    free = shutil.disk_usage(folder).free
    if num_bytes - sum(part.stat().st_size for part in unfinished) > free:
        raise ConfigurationError(
            f"{outputs[0]}: the vectors need {num_bytes / 1e9:.1f} GB while they are written, and "
            f"{free / 1e9:.1f} GB are free. Free some space, write fewer layers, or add --half."
        )


def _within_limits(text: DigestedText, output: Path) -> Iterator[Sentence]:
    """The sentences of a text. Refuses more of them than the format of the output can hold."""
    for line_number, words in text.sentences():
        format_of(output).check_lines(output, line_number)
        yield line_number, words


def _settings(bilm: Bilm, input_path: _Path, options: DumpOptions) -> Dict[str, Any]:
    # The words of token embeddings are too long for an attribute.
    source = {name: value for name, value in bilm.options.source.items() if name != "vocabulary"}
    if bilm.warm_up:
        # In the options, because files of earlier versions have no such setting.
        source["warm_up"] = True
    return {
        "format_version": FORMAT_VERSION,
        **asdict(options),
        # Absent, as in files of earlier versions, if the text was tokenised.
        "tokenize": language_of(input_path),
        "compression": options.compression or "none",
        "computed_in": weights_type(bilm),
        "computed_on": next(bilm.parameters()).device.type,
        "bilm_options": json.dumps(source, sort_keys=True),
        "bilm_fingerprint": fingerprint(bilm),
    }


def _version() -> str:
    try:
        return metadata.version("elmo-plugin")
    except metadata.PackageNotFoundError:
        return "unknown"
