import json
import math
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, Optional, Sequence, Set

import numpy
from safetensors import SafetensorError, safe_open

from elmo_plugin.elmo.dump.formats.dump_format import DumpFormat
from elmo_plugin.elmo.dump.part_file import read_header, read_part
from elmo_plugin.util.errors import ConfigurationError

_INDEX = "sentence_to_index"
_DTYPES = {"float32": "F32", "float16": "F16"}
# The library reads headers of at most 100,000,000 bytes; the rest is for the metadata.
_MAX_BYTES_OF_ENTRIES = 99_000_000
# Upper bound without the name: up to 9 layers, 999,999 tokens and offsets of 15 digits.
_BYTES_PER_ENTRY = 90


class Safetensors(DumpFormat):
    """
    A tensor per sentence, and the tensor `sentence_to_index`, the bytes of a JSON string.

    The library's own writer needs all tensors in memory, so this one follows the
    [description of the format](https://github.com/huggingface/safetensors#format): the size of the
    header as 8 bytes, the header as JSON, and the bytes of the tensors.
    """

    suffix = ".safetensors"

    def limit(self, path: Path) -> Callable[[str], None]:
        num_bytes = num_names = 0

        def add(name: str) -> None:
            nonlocal num_bytes, num_names
            num_bytes += len(_json(name).encode()) + _BYTES_PER_ENTRY
            num_names += 1
            if num_bytes > _MAX_BYTES_OF_ENTRIES:
                raise ConfigurationError(
                    f"{path} would have a header of more than 100 MB, which safetensors does not "
                    f"read: expected fewer than {num_names:,} lines. Divide the text into files "
                    "and give their folder as INPUT, or write HDF5 or Parquet."
                )

        return add

    def write(
        self, path: Path, parts: Sequence[Path], attributes: Dict[str, Any], index: Optional[str]
    ) -> int:
        with open(path, "wb") as file:
            names = _write_header(file, parts, attributes, index)
            num_sentences = len(names)
            for part in parts:
                for name, _, vectors in read_part(part):
                    if name in names:
                        names.remove(name)
                        file.write(vectors.data)
            file.write((index or "").encode())
        return num_sentences

    def read_attributes(self, path: Path) -> Optional[Dict[str, Any]]:
        try:
            with safe_open(path, "numpy") as file:
                metadata, names = file.metadata() or {}, file.keys()
        except SafetensorError:
            return None
        if "complete" not in metadata:
            return None
        # If sentences are keys, it is the name of a sentence.
        has_index = _INDEX in names and metadata.get("sentence_keys") != "True"
        return {**metadata, "num_datasets": len(names) - has_index}


def _write_header(
    file: BinaryIO, parts: Sequence[Path], attributes: Dict[str, Any], index: Optional[str]
) -> Set[str]:
    """Writes one entry after the other. Returns the names of the sentences."""
    dtype = attributes["dtype"]
    names: Set[str] = set()
    num_bytes = 0

    def write_entry(name: str, dtype: str, shape: Sequence[int], size: int) -> None:
        nonlocal num_bytes
        entry = {"dtype": dtype, "shape": shape, "data_offsets": [num_bytes, num_bytes + size]}
        file.write(f",{_json(name)}:{_json(entry)}".encode())
        num_bytes += size

    file.write(bytes(8))
    metadata = {name: str(value) for name, value in attributes.items()}
    file.write(f'{{"__metadata__":{_json(metadata)}'.encode())
    for part in parts:
        for name, shape, _ in read_header(part)[1]:
            if name not in names:
                names.add(name)
                size = math.prod(shape) * numpy.dtype(dtype).itemsize
                write_entry(name, _DTYPES[dtype], shape, size)
    if index is not None:
        size = len(index.encode())
        write_entry(_INDEX, "U8", [size], size)
    file.write(b"}")
    # Spaces, so that the vectors begin at a multiple of 8 bytes.
    file.write(b" " * (-file.tell() % 8))
    end = file.tell()
    file.seek(0)
    file.write((end - 8).to_bytes(8, "little"))
    file.seek(end)
    return names


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
