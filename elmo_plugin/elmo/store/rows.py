import json
import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, Callable, Dict, NamedTuple, Sequence, Union

import numpy
from numpy.lib import format as npy_format

from elmo_plugin.util.atomic_write import (
    UNFINISHED,
    atomic_write,
    check_output,
    resumable_file,
    write_json,
)
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder

# The size does not depend on the number of rows.
_NPY_HEADER_BYTES = 128


class RowFile(NamedTuple):
    """A file of a `Store`. `numpy.load` reads it if its suffix is `.npy`."""

    name: str
    #: Little-endian, in NumPy's notation, such as `<f2`.
    dtype: str
    #: Numbers per row.
    width: int
    #: Name of its number of rows in the state. Files with equally many rows share it.
    counter: str

    def mapped(self, folder: Path, state: Dict[str, Any]) -> numpy.ndarray:
        """Memory-maps the rows, `(num_rows, width)`. Raises `ConfigurationError` if damaged."""
        shape = (state[self.counter], self.width)
        if not shape[0]:
            return numpy.zeros(shape, self.dtype)
        try:
            # Copy on write, since torch warns of read-only arrays. Nothing is written. The file may
            # have more rows, which a killed process did not commit.
            return numpy.memmap(folder / self.name, self.dtype, "c", self.header_bytes, shape)
        except (OSError, ValueError) as error:
            raise damaged(folder, f"{self.name} is missing or too short") from error

    def open(self, folder: Path, num_rows: int) -> BinaryIO:
        """Opens the file to append after `num_rows` rows. What follows them is cut off."""
        path = folder / self.name
        size = self.header_bytes + num_rows * self.row_bytes
        if num_rows and not (path.exists() and path.stat().st_size >= size):
            raise damaged(folder, f"{self.name} is missing or too short")
        file = open(path, "r+b" if num_rows else "w+b")
        # A file that is complete stays as it is. Without rows, this leaves space for the header.
        if file.seek(0, os.SEEK_END) != size:
            file.truncate(size)
        file.seek(size)
        return file

    def commit(self, file: BinaryIO, num_rows: int) -> None:
        """Writes to the disk all rows and, into a `.npy` file, their number."""
        if self.header_bytes:
            file.seek(0)
            shape = (num_rows, self.width)
            header = {"descr": self.dtype, "fortran_order": False, "shape": shape}
            npy_format.write_array_header_1_0(file, header)
            assert file.tell() == _NPY_HEADER_BYTES
        file.seek(0, os.SEEK_END)
        file.flush()
        os.fsync(file.fileno())

    @property
    def header_bytes(self) -> int:
        return _NPY_HEADER_BYTES if self.name.endswith(".npy") else 0

    @property
    def row_bytes(self) -> int:
        return self.width * numpy.dtype(self.dtype).itemsize


class Store:
    """
    Files of rows in a folder, and a JSON file with their state. A commit appends to the files and
    then replaces the state. Killed work continues after the last commit: what was appended since is
    cut off. The index of contexts and the features of probes are stores.

    `folder` is created if needed. Existing rows with the same `settings` are continued. `start` is
    the rest of the state before the first commit, without the numbers of rows. `force` begins anew
    if the settings differ, `anew` in any case.

    Raises `ConfigurationError` if the folder cannot be created, another process is writing it, or
    it holds other files, damaged rows, or rows with other settings.
    """

    #: The name of the JSON file.
    state_file = "progress.json"

    def __init__(
        self,
        folder: Path,
        files: Sequence[RowFile],
        settings: Dict[str, Any],
        start: Dict[str, Any],
        force: bool,
        anew: bool = False,
    ) -> None:
        self.folder = folder
        self._files = {file.name: file for file in files}
        self._start = {**settings, **start, **{file.counter: 0 for file in files}}
        #: Settings, progress and numbers of rows as of the last commit.
        self.state = dict(self._start)
        self._stack = ExitStack()
        self._opened: Dict[str, BinaryIO] = {}
        if folder.is_dir() and not self._is_begun():
            # Checked before a lock is written into the folder of something else. A process that is
            # killed before it has written the state leaves what is allowed here.
            for other in sorted(set(os.listdir(folder)) - {"lock"}):
                if not other.endswith(UNFINISHED):
                    raise ConfigurationError(
                        f"{folder} holds other files ({other}), perhaps of another version of "
                        "elmo_plugin; expected a new folder, or one that this command has written. "
                        "Name another output, or delete it."
                    )
        self._lock = lock_folder(folder)
        try:
            self._open(settings, force, anew)
        except BaseException:
            Store.close(self)
            raise

    def append(self, name: str, rows: Union[bytes, numpy.ndarray]) -> None:
        """Appends rows to a file. They are lost unless `commit` follows."""
        file = self._files[name]
        if isinstance(rows, numpy.ndarray):
            rows = numpy.ascontiguousarray(rows, file.dtype).tobytes()
        self._opened[name].write(rows)

    def num_rows(self, name: str) -> int:
        """The number of rows of a file, with those since the last commit."""
        file = self._files[name]
        return (self._opened[name].tell() - file.header_bytes) // file.row_bytes

    def commit(self, **progress: Any) -> None:
        """Keeps the appended rows, together with this progress."""
        counts = {file.counter: self.num_rows(name) for name, file in self._files.items()}
        for name, file in self._files.items():
            file.commit(self._opened[name], counts[file.counter])
        self.state = {**self.state, **counts, **progress}
        write_json(self.folder / self.state_file, self.state)

    def close(self) -> None:
        """Releases the folder, and removes it if nothing was ever committed."""
        try:
            # Writes what is buffered, which may fail again on a full disk.
            self._stack.close()
        finally:
            if self._opened and self.state == self._start:
                self._remove()
            # Windows removes no open file. Elsewhere the file of another process would be removed.
            if os.name == "nt":
                self._lock.release()
            with suppress(OSError):
                (self.folder / "lock").unlink(missing_ok=True)
                # Succeeds if nothing else is in it.
                self.folder.rmdir()
            if os.name != "nt":
                self._lock.release()

    def _remove(self) -> None:
        # The state first: without its files it would count as damaged.
        for name in (self.state_file, *self._files):
            (self.folder / name).unlink(missing_ok=True)

    def _open(self, settings: Dict[str, Any], force: bool, anew: bool) -> None:
        path = self.folder / self.state_file
        anew = anew or not self._is_begun()
        if not anew:
            found = read_state(path)
            difference = settings_difference(found, settings)
            if difference and not force:
                raise ConfigurationError(
                    f"{self.folder} was begun with other settings: {difference}. Repeat that "
                    "command to continue it, name another output, or add --force to begin anew."
                )
            anew = bool(difference)
        if anew:
            # First, so that an earlier state never counts the rows that follow.
            write_json(path, self.state)
        else:
            check_types(path, found, self._start)
            self.state = {**self.state, **found}
        for name, file in self._files.items():
            opened = file.open(self.folder, self.state[file.counter])
            self._opened[name] = self._stack.enter_context(opened)

    def _is_begun(self) -> bool:
        return (self.folder / self.state_file).exists()


class ResumableFile(Store):
    """
    A file that is complete or absent, whatever stops its writer. Until `finish` writes it, its rows
    are a store in the folder `PATH.unfinished`. `path` may be a symbolic link to the file, but no
    pipe or device. `force` replaces a finished file, and unfinished work with other settings.
    """

    def __init__(
        self,
        path: Path,
        files: Sequence[RowFile],
        settings: Dict[str, Any],
        start: Dict[str, Any],
        force: bool,
    ) -> None:
        self.path = resumable_file(path)
        folder = Path(f"{self.path}{UNFINISHED}")
        # `path`, because the target of a link may lack the suffix.
        self._whole = folder / f"whole{path.suffix}"
        super().__init__(folder, files, settings, start, force)

    def finish(self, write: Callable[[Path], object]) -> None:
        """Writes the file with `write`, and then removes the rows."""
        with atomic_write(self._whole) as path:
            write(path)
        self._publish()

    def _is_begun(self) -> bool:
        return super()._is_begun() or self._whole.exists()

    def _open(self, settings: Dict[str, Any], force: bool, anew: bool) -> None:
        if self._whole.exists():
            # A process was killed just before its end.
            self._publish()
        check_output(self.path, force)
        super()._open(settings, force, anew)

    def _publish(self) -> None:
        self._stack.close()
        self._remove()
        os.replace(self._whole, self.path)
        for left_by_killed in self.folder.glob(f"*{UNFINISHED}"):
            left_by_killed.unlink()


class ResumableText(ResumableFile):
    """A text file that is written in commits; `progress` in its state is that of the last one."""

    def __init__(self, path: Path, settings: Dict[str, Any], force: bool) -> None:
        lines = RowFile("lines", "u1", 1, "num_bytes")
        super().__init__(path, [lines], settings, {"progress": {}}, force)

    def add(self, text: str, progress: Dict[str, Any]) -> None:
        """Appends text, and stores the `progress` from which work can continue after it."""
        self.append("lines", text.encode())
        self.commit(progress=progress)

    def export(self) -> None:
        """Writes the file."""
        self.finish(lambda path: shutil.copyfile(self.folder / "lines", path))


def read_state(path: Path) -> Dict[str, Any]:
    """The state in a JSON file; raises `ConfigurationError` if it is damaged."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(path.parent, f"{path.name} cannot be read") from error


def check_types(path: Path, found: Dict[str, Any], like: Dict[str, Any]) -> None:
    """Raises `ConfigurationError` unless a state has values of the types of `like`."""
    for name, value in like.items():
        given = found.get(name)
        if type(given) is not type(value) or isinstance(given, int) and given < 0:
            raise damaged(path.parent, f"{name!r} in {path.name} is missing or of another type")


def settings_difference(found: Dict[str, Any], expected: Dict[str, Any]) -> str:
    """Describes the settings that differ from earlier work; empty if none do."""
    return "; ".join(
        # Long values, such as digests, would not help in the message.
        f"{name} {found.get(name)}, now {value}" if len(str(value)) < 32 else f"another {name}"
        for name, value in expected.items()
        if found.get(name) != value
    )


def damaged(folder: Path, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"{folder} is damaged: {reason}. Delete it and run the command that wrote it again."
    )
