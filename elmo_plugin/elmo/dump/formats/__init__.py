"""The formats of files that `dump_embeddings` writes."""

from pathlib import Path

from elmo_plugin.elmo.dump.formats.dump_format import DumpFormat
from elmo_plugin.elmo.dump.formats.hdf5 import Hdf5

__all__ = ["DumpFormat", "format_of"]


def format_of(path: Path) -> DumpFormat:
    """The format that the ending of a file or folder stands for; HDF5 if it stands for no other."""
    return Hdf5()
