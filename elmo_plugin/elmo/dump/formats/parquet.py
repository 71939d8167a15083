from importlib import import_module
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import numpy

from elmo_plugin.elmo.dump.formats.dump_format import DumpFormat
from elmo_plugin.elmo.dump.part_file import EmbeddedSentence, read_header, read_part
from elmo_plugin.elmo.dump.parts import DumpOptions
from elmo_plugin.elmo.token_batches import groups
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.optional import optional_package

# Size of the vectors of a row group, which is built in memory.
_BYTES_PER_ROW_GROUP = 64_000_000
_WORD_COLUMNS = ["sentence", "position", "word"]


class Parquet(DumpFormat):
    """
    A row per token: `sentence`, the number of its line from 0, `position` in it from 0, `word`, and
    a column of vectors for each layer, or `vector`. An empty line has no rows.
    """

    suffix = ".parquet"
    compressions = ("zstd",)
    # Not needed: the words are a column.
    has_index = False

    def check(self, options: DumpOptions) -> None:
        _pyarrow()
        super().check(options)
        if options.sentence_keys:
            raise ConfigurationError(
                "--use-sentence-keys is for HDF5 and safetensors. Leave it out: in Parquet the "
                "words are a column."
            )

    def write(
        self, path: Path, parts: Sequence[Path], attributes: Dict[str, Any], index: Optional[str]
    ) -> int:
        pyarrow = _pyarrow()
        metadata = {name: str(value) for name, value in attributes.items()}
        (_, shape, _), *_ = read_header(parts[0])[1]
        schema = _schema(shape, attributes["dtype"]).with_metadata(metadata)
        with (
            open(path, "wb") as file,
            pyarrow.parquet.ParquetWriter(
                file,
                schema,
                compression=attributes["compression"],
                # For vectors, dictionaries and statistics would take space and save nothing.
                use_dictionary=_WORD_COLUMNS,
                write_statistics=_WORD_COLUMNS,
            ) as writer,
        ):
            written = (each for part in parts for each in read_part(part) if each.words)
            for sentences in groups(
                written, lambda each: each.vectors.nbytes, None, _BYTES_PER_ROW_GROUP
            ):
                writer.write_table(_table(sentences, schema))
        return attributes["num_lines"]

    def read_attributes(self, path: Path) -> Optional[Dict[str, Any]]:
        pyarrow = _pyarrow()
        try:
            found = pyarrow.parquet.read_schema(path).metadata or {}
        except pyarrow.ArrowInvalid:
            return None
        if b"complete" not in found:
            return None
        metadata = {name.decode(): value.decode() for name, value in found.items()}
        return {**metadata, "num_datasets": metadata["num_lines"]}


def _pyarrow() -> Any:
    optional_package("pyarrow.parquet", "Parquet", "'elmo-plugin[parquet]'")
    return import_module("pyarrow")


def _schema(shape: Sequence[int], dtype: str) -> Any:
    """The columns of the file. `shape` is the shape of the vectors of any sentence."""
    pyarrow = _pyarrow()
    *layers, _, dim = shape
    names = [f"layer_{layer}" for layer in range(layers[0])] if layers else ["vector"]
    vectors = pyarrow.list_(pyarrow.from_numpy_dtype(dtype), dim)
    types = [pyarrow.int64(), pyarrow.int32(), pyarrow.string()] + len(names) * [vectors]
    return pyarrow.schema(zip(_WORD_COLUMNS + names, types))


def _table(sentences: List[EmbeddedSentence], schema: Any) -> Any:
    pyarrow = _pyarrow()
    lengths = [len(sentence.words) for sentence in sentences]
    columns = [
        numpy.repeat([int(sentence.name) for sentence in sentences], lengths),
        numpy.concatenate([numpy.arange(length) for length in lengths]),
        [word for sentence in sentences for word in sentence.words],
    ]
    arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, schema)]
    for layer, field in enumerate(list(schema)[len(columns) :]):
        # Shape of one of them: (num_tokens, dim)
        vectors = [
            each.vectors.reshape(-1, len(each.words), field.type.list_size)[layer]
            for each in sentences
        ]
        values = pyarrow.array(numpy.concatenate(vectors).reshape(-1))
        arrays.append(pyarrow.FixedSizeListArray.from_arrays(values, type=field.type))
    return pyarrow.Table.from_arrays(arrays, schema=schema)
