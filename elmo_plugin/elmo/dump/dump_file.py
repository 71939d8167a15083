import json
import math
import os
import shutil
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import h5py
import numpy

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder
from elmo_plugin.util.resumable_text import settings_difference

# The file format of HDF5 1.10 (2016): names of any length, compact indexes of compressed datasets.
_LIBVER = ("v110", "v110")
_TOKENS_PER_CHUNK = 1024
# What is no setting in the progress of a file.
_PROGRESS = ("num_lines", "text_sha256")
# More than HDF5 needs for a file and for each of its datasets, apart from names and content.
_HDF5_BYTES, _HDF5_BYTES_PER_DATASET = 100_000, 1_000


@dataclass(frozen=True)
class PartWriter:
    """
    Writes the vectors of some lines as a plain file, in any process; `DumpFile.commit` makes it a
    part of the whole.
    """

    folder: Path
    settings: Dict[str, Any]

    def write(
        self, num_lines: int, text_sha256: str, datasets: Sequence[Tuple[str, numpy.ndarray]]
    ) -> Path:
        """
        # Parameters

        num_lines, text_sha256 : `int`, `str`
            The number of lines up to the end of this part, and their digest.
        datasets : `Sequence[Tuple[str, numpy.ndarray]]`
            Keys and vectors. If a key exists already, its first vectors count.

        # Raises

        `OSError`
        """
        progress = {**self.settings, "num_lines": num_lines, "text_sha256": text_sha256}
        shapes = [(key, vectors.shape) for key, vectors in datasets]
        written = self.folder / f"{num_lines:012}.{os.getpid()}.written"
        with atomic_write(written) as path, open(path, "wb") as part:
            part.write(json.dumps([progress, shapes]).encode() + b"\n")
            for _, vectors in datasets:
                part.write(numpy.ascontiguousarray(vectors).data)
        return written


class DumpFile:
    """
    The HDF5 file that `dump_embeddings` writes, and the sentences done so far.

    An HDF5 file is unreadable after its writer was killed. Therefore each commit adds a plain file
    to the folder `PATH.unfinished`, and `finish` copies these parts into one HDF5 file, which needs
    the same disk space again.

    # Parameters

    path : `Path`
        The HDF5 file to write; its folder is created if needed.
    settings : `Dict[str, Any]`
        Attributes of the HDF5 file, `dtype` and `compression` (a filter of HDF5 or `none`) among
        them. Unfinished work is continued only if it has the same.
    force : `bool`
        Replace a finished file, and unfinished work with other settings.

    # Raises

    `ConfigurationError`
        If the file is finished; if unfinished work has other settings, is damaged, or belongs to
        a running process; if the folder cannot be created.
    """

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        self.path, self.folder = path, Path(f"{path}.unfinished")
        #: The settings, and `num_lines` and `text_sha256` of the last commit.
        self.progress = {**settings, "num_lines": 0, "text_sha256": ""}
        #: Writes what `commit` takes.
        self.writer = PartWriter(self.folder, settings)
        self._whole = self.folder / "whole.hdf5"
        if path.is_dir():
            raise ConfigurationError(f"{path} is a folder; expected the name of a file to write.")
        self._lock = self._locked()
        try:
            if self._whole.exists():
                # A run was killed just before its end.
                self._publish()
            if path.exists() and not force:
                raise _exists(path)
            self._continue(force)
        except BaseException:
            self.close()
            raise

    def commit(self, written: Path) -> None:
        """Takes what `writer` wrote of the lines that follow those of the last commit."""
        self.progress, _ = _read_header(written)
        os.replace(written, self.folder / f"{self.progress['num_lines']:012}.part")

    def finish(self, input_path: str, sentence_to_index: Optional[Dict[str, str]]) -> int:
        """
        Writes the HDF5 file and removes the parts. Returns the number of sentences in the file. If
        this raises `OSError`, all commits are kept.
        """
        index = None if sentence_to_index is None else json.dumps(sentence_to_index)
        with atomic_write(self._whole) as path:
            self._reserve(path, len(index or ""))
            with h5py.File(path, "r+", libver=_LIBVER, track_order=True) as hdf5:
                for part in self._parts():
                    for key, vectors in _read_part(part):
                        if key not in hdf5:
                            _create_dataset(hdf5, key, vectors, self.progress["compression"])
                num_sentences = len(hdf5)
                if index is not None:
                    hdf5.create_dataset("sentence_to_index", 1, h5py.string_dtype())[0] = index
                hdf5.attrs.update(self.progress, input=input_path, complete=True)
                hdf5.attrs["elmo_plugin_version"] = _version()
        self._publish()
        return num_sentences

    def close(self) -> None:
        """Releases the lock; removes the folder unless it contains unfinished work."""
        if not self._parts() and not self._whole.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def _reserve(self, path: Path, index_size: int) -> None:
        """Reserves disk space, because HDF5 crashes when a write fails."""
        num_bytes = _HDF5_BYTES + index_size
        for part in self._parts():
            num_bytes += part.stat().st_size
            num_bytes += _HDF5_BYTES_PER_DATASET * len(_read_header(part)[1])
        h5py.File(path, "w", libver=_LIBVER, track_order=True).close()
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, num_bytes)

    def _publish(self) -> None:
        self._remove_parts()
        os.replace(self._whole, self.path)

    def _continue(self, force: bool) -> None:
        for written in self.folder.glob("*.written*"):
            # Of a process that was killed before the commit.
            written.unlink()
        parts = self._parts()
        if not parts:
            return
        progress, _ = _read_header(parts[-1])
        settings = {name: self.progress[name] for name in self.progress if name not in _PROGRESS}
        difference = settings_difference(progress, settings)
        if not difference:
            self.progress = progress
        elif force:
            self._remove_parts()
        else:
            raise ConfigurationError(
                f"{self.folder} was begun with other settings: {difference}. Repeat that command "
                "to continue it, name another output, or add --force to begin anew."
            )

    def _parts(self) -> List[Path]:
        return sorted(self.folder.glob("*.part"))

    def _remove_parts(self) -> None:
        # The last part first: if the process is killed here, the others can be continued.
        for part in reversed(self._parts()):
            part.unlink()

    def _locked(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be written: {error.filename} is not a folder and cannot be "
                "made one."
            ) from error
        return lock_folder(self.folder)


def finished_attributes(path: Path) -> Optional[Dict[str, Any]]:
    """Of a finished file, its attributes and `num_datasets`; `None` if there is none."""
    if not path.is_file() or not h5py.is_hdf5(path):
        return None
    with h5py.File(path, "r") as hdf5:
        if not hdf5.attrs.get("complete", False):
            return None
        return {**hdf5.attrs, "num_datasets": len(hdf5) - ("sentence_to_index" in hdf5)}


def _read_header(path: Path) -> Tuple[Dict[str, Any], List[Tuple[str, List[int]]]]:
    """The progress at that commit, and the key and shape of each sentence."""
    with open(path, "rb") as part:
        try:
            progress, shapes = json.loads(part.readline())
        except ValueError:
            raise _damaged(path) from None
        return progress, shapes


def _read_part(path: Path) -> Iterator[Tuple[str, numpy.ndarray]]:
    progress, shapes = _read_header(path)
    dtype = numpy.dtype(progress["dtype"])
    with open(path, "rb") as part:
        part.readline()
        for key, shape in shapes:
            size = math.prod(shape) * dtype.itemsize
            content = part.read(size)
            if len(content) != size:
                raise _damaged(path)
            yield key, numpy.frombuffer(content, dtype).reshape(shape)


def _create_dataset(hdf5: h5py.File, key: str, vectors: numpy.ndarray, compression: str) -> None:
    if compression == "none" or vectors.size == 0:
        hdf5.create_dataset(key, data=vectors)
        return
    *layers, num_tokens, dim = vectors.shape
    chunks = (*layers, min(num_tokens, _TOKENS_PER_CHUNK), dim)
    # Shuffled bytes compress better.
    hdf5.create_dataset(key, data=vectors, chunks=chunks, compression=compression, shuffle=True)


def _damaged(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is damaged. Delete its folder and give the same command again."
    )


def _exists(path: Path) -> ConfigurationError:
    found = finished_attributes(path)
    finished = "" if found is None else f" and is finished, with {found['num_lines']} lines"
    return ConfigurationError(f"{path} exists{finished}. Add --force to replace it.")


def _version() -> str:
    try:
        return metadata.version("elmo-plugin")
    except metadata.PackageNotFoundError:
        return "unknown"
