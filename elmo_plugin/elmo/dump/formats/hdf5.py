import os
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

import h5py
import numpy

from elmo_plugin.elmo.dump.formats.dump_format import DumpFormat
from elmo_plugin.elmo.dump.part_file import read_header, read_part

# The file format of HDF5 1.10 (2016): names of any length, compact indexes of compressed datasets.
_LIBVER = ("v110", "v110")
_TOKENS_PER_CHUNK = 1024
# More than HDF5 needs for a file and for each of its datasets, apart from names and content.
_HDF5_BYTES, _HDF5_BYTES_PER_DATASET = 100_000, 1_000


class Hdf5(DumpFormat):
    """A dataset per sentence, and the dataset `sentence_to_index`, a JSON string."""

    suffix = ".hdf5"
    compressions = ("gzip", "lzf")

    def write(
        self, path: Path, parts: Sequence[Path], attributes: Dict[str, Any], index: Optional[str]
    ) -> int:
        _reserve(path, parts, len(index or ""))
        with h5py.File(path, "r+", libver=_LIBVER, track_order=True) as hdf5:
            for part in parts:
                for name, _, vectors in read_part(part):
                    if name not in hdf5:
                        _create_dataset(hdf5, name, vectors, attributes["compression"])
            num_sentences = len(hdf5)
            if index is not None:
                hdf5.create_dataset("sentence_to_index", 1, h5py.string_dtype())[0] = index
            hdf5.attrs.update(attributes)
        return num_sentences

    def read_attributes(self, path: Path) -> Optional[Dict[str, Any]]:
        if not h5py.is_hdf5(path):
            return None
        with h5py.File(path, "r") as hdf5:
            if not hdf5.attrs.get("complete", False):
                return None
            # If sentences are keys, it is the name of a sentence.
            has_index = "sentence_to_index" in hdf5 and not hdf5.attrs.get("sentence_keys")
            return {**hdf5.attrs, "num_datasets": len(hdf5) - has_index}


def _reserve(path: Path, parts: Sequence[Path], index_size: int) -> None:
    """Reserves disk space, because HDF5 crashes when a write fails."""
    num_bytes = _HDF5_BYTES + index_size
    for part in parts:
        num_bytes += part.stat().st_size
        num_bytes += _HDF5_BYTES_PER_DATASET * len(read_header(part)[1])
    h5py.File(path, "w", libver=_LIBVER, track_order=True).close()
    with open(path, "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, num_bytes)


def _create_dataset(hdf5: h5py.File, name: str, vectors: numpy.ndarray, compression: str) -> None:
    if compression == "none" or vectors.size == 0:
        hdf5.create_dataset(name, data=vectors)
        return
    *layers, num_tokens, dim = vectors.shape
    chunks = (*layers, min(num_tokens, _TOKENS_PER_CHUNK), dim)
    # Shuffled bytes compress better.
    hdf5.create_dataset(name, data=vectors, chunks=chunks, compression=compression, shuffle=True)
