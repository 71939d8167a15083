import json
import os
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, Optional, Type

import h5py
import numpy

from elmo_plugin.elmo.dump.journaled_file import JournaledFile, journal_path, sync_directory
from elmo_plugin.util.errors import ConfigurationError

FORMAT_VERSION = 1
# Indexes that grow in place, however long the names, and compressed datasets without an index each;
# HDF5 1.10 of 2016 reads them.
_LIBVER = ("v110", "v110")
_TOKENS_PER_CHUNK = 1024


class DumpFile:
    """
    The HDF5 file that `dump_embeddings` makes. Until `finish` it is `PATH.unfinished`, with its
    journal beside it (see `JournaledFile`), and holds what was there at the last `commit`.

    Attributes of the file: `format_version`, the settings, `elmo_plugin_version`, `input`,
    `num_lines` and `text_sha256` (the lines done so far and their sentences), `complete`.

    # Parameters

    path : `Path`
        Where the finished file will be.
    settings : `Dict[str, Any]`
        Attributes; an unfinished file is continued only if it has the same.
    force : `bool`
        Replace a finished file, and an unfinished one with other settings.

    # Raises

    `ConfigurationError`
        If the file is finished, unfinished with other settings, unreadable, or in use, or if its
        folder cannot be made.
    """

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        self.path = path
        self.unfinished = Path(f"{path}.unfinished")
        if path.is_dir():
            raise ConfigurationError(f"{path} is a folder; expected the name of a file to write.")
        if path.exists() and not force:
            raise ConfigurationError(_finished_message(path))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be written: {error.filename} is no folder and cannot be made one."
            ) from error
        if not self.unfinished.exists():
            self._create(settings)
        obstacle = self._open(settings)
        if obstacle and force:
            self._abandon()
            self._create(settings)
            obstacle = self._open(settings)
        if obstacle:
            self._abandon()
            raise ConfigurationError(f"{self.unfinished} {obstacle}")

    def __enter__(self) -> "DumpFile":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._abandon()

    def __contains__(self, key: str) -> bool:
        return key in self._hdf5

    @property
    def num_lines(self) -> int:
        """Lines done at the last commit."""
        return int(self._hdf5.attrs["num_lines"])

    @property
    def text_sha256(self) -> str:
        """Digest of the sentences of these lines."""
        return str(self._hdf5.attrs["text_sha256"])

    @property
    def num_datasets(self) -> int:
        """Sentences in the file."""
        return len(self._hdf5)

    def add(self, key: str, vectors: numpy.ndarray, compression: Optional[str]) -> None:
        """
        Writes the vectors of a sentence.

        # Raises

        `OSError`
            If the disk is full.
        """
        if compression is None or vectors.size == 0:
            self._hdf5.create_dataset(key, data=vectors)
        else:
            *layers, num_tokens, dim = vectors.shape
            chunks = (*layers, min(num_tokens, _TOKENS_PER_CHUNK), dim)
            # Numbers compress better with their first bytes side by side.
            self._hdf5.create_dataset(
                key, data=vectors, chunks=chunks, compression=compression, shuffle=True
            )
        if self._journaled.error is not None:
            raise self._journaled.error

    def commit(self, num_lines: int, text_sha256: str) -> None:
        """Makes what was added survive, as the first `num_lines` lines."""
        self._hdf5.attrs.modify("num_lines", num_lines)
        self._hdf5.attrs.modify("text_sha256", text_sha256)
        # Only a closed HDF5 file is whole.
        self._hdf5.close()
        self._journaled.commit()
        self._hdf5 = h5py.File(self._journaled, "r+", libver=_LIBVER)

    def finish(self, input_path: str, sentence_to_index: Optional[Dict[str, str]]) -> None:
        """Gives the file its last parts and its name."""
        if sentence_to_index is not None:
            index = self._hdf5.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
            index[0] = json.dumps(sentence_to_index)
        self._hdf5.attrs["input"] = input_path
        self._hdf5.attrs.modify("complete", True)
        self._hdf5.close()
        self._journaled.commit()
        os.replace(self.unfinished, self.path)
        journal_path(self.unfinished).unlink()
        sync_directory(self.path.parent)

    def _create(self, settings: Dict[str, Any]) -> None:
        new = Path(f"{self.unfinished}.new")
        with h5py.File(new, "w", libver=_LIBVER, track_order=True) as created:
            created.attrs["format_version"] = FORMAT_VERSION
            created.attrs["elmo_plugin_version"] = _version()
            created.attrs.update(settings)
            created.attrs.update(num_lines=0, text_sha256="0" * 64, complete=False)
        # A journal left over from another file must not be applied to this one.
        journal_path(self.unfinished).unlink(missing_ok=True)
        sync_directory(self.path.parent)
        os.replace(new, self.unfinished)

    def _open(self, settings: Dict[str, Any]) -> str:
        """
        # Returns

        `str`
            Why the unfinished file cannot be continued; empty if it can.
        """
        self._hdf5: Optional[h5py.File] = None
        try:
            self._journaled = JournaledFile(self.unfinished)
        except BlockingIOError:
            raise ConfigurationError(
                f"{self.unfinished} is being written by another process. Wait for it, or give "
                "another output."
            ) from None
        if not journal_path(self.unfinished).exists():
            self._journaled.commit()
        try:
            self._hdf5 = h5py.File(self._journaled, "r+", libver=_LIBVER)
            return _difference(dict(self._hdf5.attrs), settings)
        # What h5py raises for a damaged file depends on where the damage is.
        except (OSError, RuntimeError, KeyError) as error:
            return f"is damaged ({error}). Add --force to begin anew."

    def _abandon(self) -> None:
        self._journaled.abandon()
        if self._hdf5 is not None:
            self._hdf5.close()
        self._journaled.close()


def _difference(found: Dict[str, Any], settings: Dict[str, Any]) -> str:
    expected = {"format_version": FORMAT_VERSION, **settings}
    differences = [
        # Of digests and options the name says enough.
        f"{name} {found.get(name)}, now {value}" if len(str(value)) < 32 else f"another {name}"
        for name, value in expected.items()
        if found.get(name) != value
    ]
    if not differences:
        return ""
    return (
        f"was begun otherwise: {'; '.join(differences)}. Repeat the command of that time to "
        "continue it, give another output, or add --force to begin anew."
    )


def _finished_message(path: Path) -> str:
    finished = ""
    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as hdf5:
            if hdf5.attrs.get("complete", False):
                finished = f" and is finished, with {hdf5.attrs['num_lines']} lines"
    return f"{path} exists{finished}; it was left as it is. Add --force to make it again."


def _version() -> str:
    try:
        return metadata.version("elmo-plugin")
    except metadata.PackageNotFoundError:
        return "unknown"
