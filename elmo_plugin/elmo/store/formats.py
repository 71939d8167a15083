import json
import os
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy
from safetensors import SafetensorError, safe_open

from elmo_plugin.bilm.files.arrays import hdf5_package
from elmo_plugin.elmo.store.sentence_vectors import DumpOptions, EmbeddedSentence
from elmo_plugin.elmo.token_batches import groups
from elmo_plugin.util.errors import ConfigurationError, optional_package

_INDEX = "sentence_to_index"

# The file format of HDF5 1.10 (2016): names of any length, compact indexes of compressed datasets.
_LIBVER = ("v110", "v110")
_TOKENS_PER_CHUNK = 1024
# More than HDF5 needs for a file and for each of its datasets, apart from names and content.
_HDF5_BYTES, _HDF5_BYTES_PER_DATASET = 100_000, 1_000

_SAFETENSORS_TYPES = {"float32": "F32", "float16": "F16"}
# The library reads headers of at most 100,000,000 bytes. An entry has at most 98, with 9 layers,
# 999,999 tokens and offsets of 15 digits; the rest is for the metadata.
_MAX_LINES = 1_000_000

# Size of the vectors of a row group of Parquet, which is built in memory.
_BYTES_PER_ROW_GROUP = 64_000_000
_WORD_COLUMNS = ["sentence", "position", "word"]
# Of pooled vectors, one row per sentence.
_TEXT_COLUMNS = ["sentence", "text"]


#: Iterates over the sentences of a file. Their vectors are read when they are used.
Sentences = Callable[[], Iterator[EmbeddedSentence]]
#: Of a file: strings, numbers and booleans; `dtype` and `compression` among them.
Attributes = Dict[str, Any]


class DumpFormat(ABC):
    """A file format of `elmo embed`."""

    #: The suffix of its files.
    suffix: str
    #: Whether the format stores the map from sentences to lines.
    has_index = True
    #: What its files can be compressed by.
    compressions: Tuple[str, ...] = ()

    def check(self, options: DumpOptions) -> None:
        """Raises `ConfigurationError` for options it lacks, `ImportError` for a missing package."""
        if options.compression not in (None, *self.compressions):
            known = " or ".join(self.compressions) or "no compression"
            raise ConfigurationError(
                f"--compression {options.compression}: {self.suffix} has {known}. "
                "Change it, or leave it out."
            )

    def check_lines(self, path: Path, num_lines: int) -> None:  # noqa: B027
        """Raises `ConfigurationError` if the file cannot hold so many lines."""

    @abstractmethod
    def write(
        self, path: Path, sentences: Sentences, attributes: Attributes, index: Optional[str]
    ) -> None:
        """Writes a file. `index` is the map from sentences to lines, as JSON."""

    @abstractmethod
    def read_attributes(self, path: Path) -> Attributes:
        """The attributes of a file, as written or as strings; none if it has another format."""


class Hdf5(DumpFormat):
    """One dataset per sentence. The dataset `sentence_to_index` is a JSON string."""

    suffix = ".hdf5"
    compressions = ("gzip", "lzf")

    def check(self, options: DumpOptions) -> None:
        hdf5_package()
        super().check(options)

    def write(
        self, path: Path, sentences: Sentences, attributes: Attributes, index: Optional[str]
    ) -> None:
        h5py = hdf5_package()
        # Reserves disk space, because HDF5 crashes when a write fails.
        num_bytes = _HDF5_BYTES + len(index or "")
        for name, _, vectors in sentences():
            num_bytes += _HDF5_BYTES_PER_DATASET + 4 * len(name) + vectors.nbytes
        h5py.File(path, "w", libver=_LIBVER, track_order=True).close()
        with open(path, "r+b") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, num_bytes)
            else:
                # Reserves space on Windows, but not on macOS.
                file.truncate(num_bytes)
        with h5py.File(path, "r+", libver=_LIBVER, track_order=True) as hdf5:
            for name, _, vectors in sentences():
                settings: Dict[str, Any] = {}
                if attributes["compression"] != "none" and vectors.size:
                    # Pooled vectors have no dimension of tokens.
                    *others, dim = vectors.shape
                    chunks = (*others[:-1], *(min(n, _TOKENS_PER_CHUNK) for n in others[-1:]), dim)
                    # Shuffled bytes compress better.
                    settings = dict(chunks=chunks, shuffle=True)
                    settings["compression"] = attributes["compression"]
                hdf5.create_dataset(name, data=vectors, **settings)
            if index is not None:
                hdf5.create_dataset(_INDEX, 1, h5py.string_dtype())[0] = index
            hdf5.attrs.update(attributes)

    def read_attributes(self, path: Path) -> Attributes:
        h5py = hdf5_package()
        if not h5py.is_hdf5(path):
            return {}
        with h5py.File(path, "r") as hdf5:
            return dict(hdf5.attrs)


class Safetensors(DumpFormat):
    """
    One tensor per sentence. The tensor `sentence_to_index` has the bytes of a JSON string. The
    library's own writer needs all tensors in memory. This one follows the [description of the
    format](https://github.com/huggingface/safetensors#format): the size of the header as 8 bytes,
    the header as JSON, and the bytes of the tensors.
    """

    suffix = ".safetensors"

    def check_lines(self, path: Path, num_lines: int) -> None:
        if num_lines > _MAX_LINES:
            raise ConfigurationError(
                f"{path} would have a header of more than 100 MB, which safetensors does not "
                f"read: expected at most {_MAX_LINES:,} lines. Divide the text into files "
                "and give their folder as INPUT, or write HDF5 or Parquet."
            )

    def write(
        self, path: Path, sentences: Sentences, attributes: Attributes, index: Optional[str]
    ) -> None:
        dtype = _SAFETENSORS_TYPES[attributes["dtype"]]
        content = (index or "").encode()
        num_bytes = 0

        def entry(name: str, dtype: str, shape: Sequence[int], size: int) -> bytes:
            nonlocal num_bytes
            offsets = [num_bytes, num_bytes + size]
            num_bytes += size
            value = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
            return f",{_json(name)}:{_json(value)}".encode()

        with open(path, "wb") as file:
            file.write(bytes(8) + f'{{"__metadata__":{_json(as_strings(attributes))}'.encode())
            for name, _, vectors in sentences():
                file.write(entry(name, dtype, vectors.shape, vectors.nbytes))
            if index is not None:
                file.write(entry(_INDEX, "U8", [len(content)], len(content)))
            # Spaces, so that the vectors begin at a multiple of 8 bytes.
            file.write(b"}" + b" " * (-(file.tell() + 1) % 8))
            end = file.tell()
            file.seek(0)
            file.write((end - 8).to_bytes(8, "little"))
            file.seek(end)
            for _, _, vectors in sentences():
                file.write(vectors.data)
            file.write(content)

    def read_attributes(self, path: Path) -> Attributes:
        try:
            with safe_open(path, "numpy") as file:
                return file.metadata() or {}
        except SafetensorError:
            return {}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Parquet(DumpFormat):
    """
    One row per token: `sentence` (number of its line, from 0), `position` in it (from 0), `word`,
    and one column of vectors per layer (`layer_0` and so on), or `vector`. Empty lines have no
    rows. Pooled vectors have one row per line: `sentence`, `text` (its words) and the vectors.
    """

    suffix = ".parquet"
    compressions = ("zstd",)
    # Not needed: the words are a column.
    has_index = False

    def check(self, options: DumpOptions) -> None:
        _pyarrow()
        super().check(options)

    def write(
        self, path: Path, sentences: Sentences, attributes: Attributes, index: Optional[str]
    ) -> None:
        is_pooled = "pool" in attributes
        columns = _TEXT_COLUMNS if is_pooled else _WORD_COLUMNS
        schema = _schema(columns, attributes["layers"], next(sentences()).vectors)
        schema = schema.with_metadata(as_strings(attributes))
        with (
            open(path, "wb") as file,
            _pyarrow().parquet.ParquetWriter(
                file,
                schema,
                compression=attributes["compression"],
                # For vectors, dictionaries and statistics would take space and save nothing.
                use_dictionary=columns,
                write_statistics=columns,
            ) as writer,
        ):
            written = (each for each in sentences() if each.words or is_pooled)
            for group in groups(
                written, lambda each: each.vectors.nbytes, None, _BYTES_PER_ROW_GROUP
            ):
                writer.write_table(_table(group, schema))

    def read_attributes(self, path: Path) -> Attributes:
        pyarrow = _pyarrow()
        try:
            found = pyarrow.parquet.read_schema(path).metadata or {}
        except pyarrow.ArrowInvalid:
            return {}
        return {name.decode(): value.decode() for name, value in found.items()}


def _pyarrow() -> Any:
    optional_package("pyarrow.parquet", "Parquet")
    return import_module("pyarrow")


def _schema(columns: List[str], layers: str, vectors: numpy.ndarray) -> Any:
    """The columns of a file, from the `layers` in it and the vectors of any sentence."""
    pyarrow = _pyarrow()
    names = ["vector"]
    if layers not in ("top", "average"):
        numbers = range(len(vectors)) if layers == "all" else layers.split(",")
        names = [f"layer_{number}" for number in numbers]
    vector = pyarrow.list_(pyarrow.from_numpy_dtype(vectors.dtype), vectors.shape[-1])
    types = {"sentence": pyarrow.int64(), "position": pyarrow.int32()}
    fields = [(name, types.get(name, pyarrow.string())) for name in columns]
    return pyarrow.schema(fields + [(name, vector) for name in names])


def _table(sentences: List[EmbeddedSentence], schema: Any) -> Any:
    pyarrow = _pyarrow()
    numbers = [int(sentence.name) for sentence in sentences]
    columns: List[Any]
    if schema.names[:2] == _TEXT_COLUMNS:
        lengths = [1] * len(sentences)
        columns = [numbers, [" ".join(sentence.words) for sentence in sentences]]
    else:
        lengths = [len(sentence.words) for sentence in sentences]
        columns = [
            numpy.repeat(numbers, lengths),
            numpy.concatenate([numpy.arange(length) for length in lengths]),
            [word for sentence in sentences for word in sentence.words],
        ]
    for layer, field in enumerate(list(schema)[len(columns) :]):
        # Shape of one of them: (num_tokens, dim), or (1, dim) if pooled
        vectors = [
            each.vectors.reshape(-1, length, field.type.list_size)[layer]
            for each, length in zip(sentences, lengths)
        ]
        values = numpy.concatenate(vectors).reshape(-1)
        columns.append(pyarrow.FixedSizeListArray.from_arrays(values, type=field.type))
    return pyarrow.Table.from_arrays(columns, schema=schema)


_FORMATS = {format.suffix: format for format in (Hdf5(), Safetensors(), Parquet())}


def format_of(path: Path) -> DumpFormat:
    """The format that the suffix of a file or folder names; HDF5 if it names no other."""
    return _FORMATS.get(path.suffix.lower(), _FORMATS[Hdf5.suffix])


def as_strings(attributes: Attributes) -> Dict[str, str]:
    return {name: str(value) for name, value in attributes.items()}
