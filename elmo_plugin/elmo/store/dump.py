import json
import math
import os
import shutil
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Tuple, Union

import numpy

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint, weights_type
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.store.formats import Dump, format_of
from elmo_plugin.elmo.store.resumable import ResumableFile
from elmo_plugin.elmo.store.rows import RowFile, settings_difference
from elmo_plugin.elmo.store.sentence_vectors import (
    DumpOptions,
    EmbeddedSentence,
    SentenceGroup,
    SentenceVectors,
    compute_vectors,
    dataset_name,
)
from elmo_plugin.elmo.token_batches import Sentence, sentence_groups
from elmo_plugin.util.atomic_write import UNFINISHED
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.text_files import find_file

FORMAT_VERSION = 1
_Path = Union[str, os.PathLike]


@dataclass(frozen=True)
class DumpSummary:
    """Counts for the whole file. An earlier call had done `num_resumed` of the lines."""

    num_lines: int
    num_tokens: int
    #: Fewer than lines only if sentences are keys.
    num_datasets: int
    num_resumed: int


class DumpFile(ResumableFile):
    """The file of `dump_embeddings`. Until it is written, its rows need the same space again."""

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        self._format = format_of(path)
        self._dtype = numpy.dtype(settings["dtype"])
        # `vectors` has all numbers, `sentences` a JSON list of name, shape and words per line.
        files = [RowFile("vectors", self._dtype.str, 1, "num_numbers")]
        files += [RowFile("sentences", "u1", 1, "num_bytes")]
        progress = {"num_lines": 0, "text_sha256": ""}
        self._attributes = [*settings, *progress]
        super().__init__(path, files, settings, progress, force)

    def add(self, group: SentenceGroup, sentences: List[EmbeddedSentence]) -> None:
        """Commits the lines of one group."""
        for name, words, vectors in sentences:
            self.append("vectors", vectors)
            self.append("sentences", f"{json.dumps([name, vectors.shape, words])}\n".encode())
        self.commit(num_lines=group.num_lines, text_sha256=group.text_sha256)

    def export(self, input_path: str, sentence_to_index: Optional[Dict[str, str]]) -> int:
        """Writes the file and returns its number of sentences."""
        attributes = {name: self.state[name] for name in self._attributes}
        attributes.update(input=input_path, complete=True, elmo_plugin_version=_version())
        index = None if sentence_to_index is None else json.dumps(sentence_to_index)
        dump = Dump(self._sentences, attributes, index)
        return self.finish(lambda path: self._format.write(path, dump))

    def _sentences(self) -> Iterator[EmbeddedSentence]:
        """Sentences in the order of the lines; if they are keys, only the first of equal ones."""
        numbers = self.mapped("vectors")[:, 0]
        names: Set[str] = set()
        end = 0
        with open(self.folder / "sentences", encoding="utf-8") as lines:
            for name, shape, words in map(json.loads, lines):
                start, end = end, end + math.prod(shape)
                if name not in names:
                    yield EmbeddedSentence(name, words, numbers[start:end].reshape(shape))
                if self.state.get("sentence_keys"):
                    names.add(name)


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

    HDF5 and safetensors have one dataset per line: `(num_layers, num_tokens, output_dim)`, or
    `(num_tokens, output_dim)` for one layer or the average. An empty line gives an empty dataset
    (none if sentences are keys). Parquet has one row per token. Attributes of the file are the
    options, `bilm_options`, `bilm_fingerprint`, `input`, `num_lines`, `text_sha256` (of the
    sentences), `complete` and versions.

    After a kill, the same call continues after the last commit and ends with the same file; see
    `sentence_groups`. Memory grows with `batch_size`, the longest line, `num_workers` and, unless
    `forget_sentences` is set, the distinct sentences. For `force` see `ResumableFile`.

    `num_workers` processes compute vectors; 0 means this process alone. They share the cores unless
    `OMP_NUM_THREADS` is set. One process with as many threads gives the same vectors. `on_progress`
    is called with the number of lines done since the last call.

    Raises `ConfigurationError` if the biLM is stateful, the input is empty, the format cannot do
    what the options ask for, the output cannot be written or was begun with another text, vectors
    are not finite, or a worker is killed; `ImportError` if Parquet needs pyarrow; `OSError` if
    reading or writing fails. The lines done are kept.
    """
    if bilm.stateful:
        raise ConfigurationError("`dump_embeddings` needs a biLM that is not stateful.")
    output_path = expanded(output_path)
    if os.path.exists(output_path) and os.path.samefile(find_file(input_path), output_path):
        raise ConfigurationError(f"{output_path} is the input; name another output.")
    format_of(output_path).check(options)
    text = _Text(input_path, output_path, options)
    sentences = text.sentences()
    # Read before the output is opened, so that an empty or missing input is reported first.
    first = next(sentences, None)
    if first is None:
        raise ConfigurationError(f"{input_path} is empty; expected a sentence per line.")
    sentences = chain([first], sentences)
    with closing(DumpFile(output_path, _settings(bilm, options), force)) as file:
        num_resumed = file.state["num_lines"]
        text.skip(sentences, num_resumed, file.state["text_sha256"], file.folder)
        on_progress(num_resumed)
        # `text` counts the lines that were read so far.
        groups = (
            SentenceGroup(group, text.num_lines, text.sha256)
            for group in sentence_groups(sentences, options.batch_size)
        )
        vectors = SentenceVectors(bilm, options, str(input_path))
        for group, embedded in compute_vectors(vectors, groups, num_workers):
            file.add(group, embedded)
            on_progress(len(group.sentences))
        num_datasets = file.export(str(input_path), text.sentence_to_index)
    return DumpSummary(text.num_lines, text.num_tokens, num_datasets, num_resumed)


def finished_dump(
    bilm: Bilm, input_path: _Path, output_path: _Path, options: DumpOptions
) -> Optional[DumpSummary]:
    """
    The summary of a finished file, with all lines as resumed; `None` if there is no such file.
    Raises `ConfigurationError` if the file has another text or other settings.
    """
    found = finished_attributes(Path(output_path))
    if found is None:
        return None
    settings = {name: str(value) for name, value in _settings(bilm, options).items()}
    text = DigestedText([input_path])
    text.read_all()
    difference = settings_difference(found, settings)
    if difference or text.sha256 != found["text_sha256"]:
        kind = "with other settings" if difference else "of another text"
        raise ConfigurationError(
            f"{output_path} is finished, {kind}: {difference or f'{input_path} has changed'}. Name "
            "another output, or add --force to replace it."
        )
    return DumpSummary(text.num_lines, text.num_tokens, int(found["num_datasets"]), text.num_lines)


def finished_attributes(path: Path) -> Optional[Dict[str, str]]:
    """The attributes of a finished file and `num_datasets`; `None` if there is none."""
    found = format_of(path).read_attributes(path) if path.is_file() else None
    return None if found is None else {name: str(value) for name, value in found.items()}


def count_text(input_path: _Path, output_path: _Path, options: DumpOptions) -> Tuple[int, int]:
    """Counts lines and tokens. Raises `ConfigurationError` if the format holds fewer lines."""
    text = _Text(input_path, Path(output_path), replace(options, forget_sentences=True))
    text.read_all()
    return text.num_lines, text.num_tokens


def vector_bytes(bilm: Bilm, num_tokens: int, options: DumpOptions) -> int:
    """The size of the vectors of `num_tokens` tokens, uncompressed."""
    num_layers = bilm.num_layers if options.layers == "all" else 1
    return num_tokens * num_layers * bilm.output_dim * numpy.dtype(options.dtype).itemsize


def check_space(
    output_path: _Path, num_bytes: int, files: Optional[Iterable[_Path]] = None
) -> None:
    """
    Raises `ConfigurationError` if the free disk space is smaller than `num_bytes` minus what an
    unfinished call has written. If the output is a folder, `files` are the files in it.
    """
    folder = Path(os.path.realpath(output_path))
    unfinished = [Path(f"{os.path.realpath(file)}{UNFINISHED}") for file in files or [folder]]
    done = sum(path.stat().st_size for each in unfinished for path in each.glob("*"))
    while not folder.is_dir():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if num_bytes - done > free:
        raise ConfigurationError(
            f"{output_path} needs {num_bytes / 1e9:.1f} GB while it is written, and "
            f"{free / 1e9:.1f} GB are free. Free some space, write fewer layers, or add --half."
        )


class _Text(DigestedText):
    """Also maps sentences to lines, and refuses more lines than the output can hold."""

    def __init__(self, path: _Path, output_path: Path, options: DumpOptions) -> None:
        super().__init__([path])
        self._options, self._output_path = options, output_path
        self._format = format_of(output_path)
        keep = self._format.has_index and not (options.sentence_keys or options.forget_sentences)
        self.sentence_to_index: Optional[Dict[str, str]] = {} if keep else None

    def sentences(self) -> Iterator[Sentence]:
        num_bytes = 0
        for line_number, words in super().sentences():
            name = dataset_name(line_number, words, self._options)
            num_bytes += len(json.dumps(name, ensure_ascii=False).encode())
            self._format.check_names(self._output_path, line_number, num_bytes)
            if self.sentence_to_index is not None:
                self.sentence_to_index.setdefault(" ".join(words), str(line_number - 1))
            yield line_number, words


def _settings(bilm: Bilm, options: DumpOptions) -> Dict[str, Any]:
    # The words of token embeddings are too long for an attribute.
    source = {name: value for name, value in bilm.options.source.items() if name != "vocabulary"}
    if bilm.warm_up:
        # In the options, because files of earlier versions have no such setting.
        source["warm_up"] = True
    return {
        "format_version": FORMAT_VERSION,
        **asdict(options),
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
