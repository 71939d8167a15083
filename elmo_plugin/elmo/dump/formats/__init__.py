"""The formats of files that `dump_embeddings` writes."""

from pathlib import Path

from elmo_plugin.elmo.dump.formats.dump_format import DumpFormat
from elmo_plugin.elmo.dump.formats.hdf5 import Hdf5
from elmo_plugin.elmo.dump.formats.parquet import Parquet
from elmo_plugin.elmo.dump.formats.safetensors import Safetensors

__all__ = ["DumpFormat", "format_of"]

_FORMATS = {format.suffix: format for format in (Hdf5(), Safetensors(), Parquet())}


def format_of(path: Path) -> DumpFormat:
    """The format that the suffix of a file or folder stands for; HDF5 if it stands for no other."""
    return _FORMATS.get(path.suffix.lower(), _FORMATS[Hdf5.suffix])
