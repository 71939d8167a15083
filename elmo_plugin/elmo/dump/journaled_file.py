import fcntl
import io
import os
from pathlib import Path
from typing import Dict, Optional, Tuple, Union

import numpy

_PAGE = 512


class JournaledFile:
    """
    A file whose last `commit` survives `kill -9`, a full disk and a power cut, for h5py to write
    into: `h5py.File(journaled_file, "r+")`.

    HDF5 rewrites its index in place, so the file of a writer that was killed can often not be
    opened at all. Here bytes that a commit has made part of the file are left alone until the
    next commit: changes to them wait in memory, while new bytes go straight to the end of the
    file. A commit makes the new bytes durable, then writes the waiting changes into a journal
    beside the file, which appears under its name only when it is whole, and only then applies
    them. Opening the file again applies the journal once more and cuts off what came after it.
    Unlike blocks that are converted at the end, this needs no second copy of the vectors.

    Memory grows with the changes between two commits: for HDF5 some kilobytes per dataset.

    # Parameters

    path : `Union[str, os.PathLike]`
        An existing file. Its journal is `path` with `.journal` after it.

    # Raises

    `BlockingIOError`
        If another process has the file open this way.
    """

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        self.path = Path(path)
        self.error: Optional[OSError] = None
        self._descriptor = os.open(self.path, os.O_RDWR)
        try:
            _lock(self._descriptor)
            if journal_path(self.path).exists():
                self._apply(*_read_journal(journal_path(self.path)))
            self._size = os.fstat(self._descriptor).st_size
        except BaseException:
            os.close(self._descriptor)
            raise
        self._position = 0
        self._pages: Dict[int, bytearray] = {}
        self._protected = _whole_pages(self._size)

    def commit(self) -> None:
        """
        Makes everything written so far survive.

        # Raises

        `OSError`
            If it could not be written; the file then stays at the commit before.
        """
        if self.error is not None:
            raise self.error
        os.fsync(self._descriptor)
        starts = numpy.array(sorted(self._pages), dtype=numpy.int64)
        pages = numpy.frombuffer(b"".join(self._pages[start] for start in starts), numpy.uint8)
        _write_journal(journal_path(self.path), self._size, starts, pages.reshape(-1, _PAGE))
        self._apply(self._size, starts, pages.reshape(-1, _PAGE))
        self._pages.clear()
        self._protected = _whole_pages(self._size)

    def abandon(self) -> None:
        """Keeps all that is still to be written in memory, so that HDF5 can close in peace."""
        self._protected = float("inf")

    def close(self) -> None:
        """Closes without a commit."""
        os.close(self._descriptor)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """As any file's; h5py calls it with `SEEK_SET` and `SEEK_END`."""
        self._position = offset + (self._size if whence == io.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        """As any file's."""
        return self._position

    def flush(self) -> None:
        """Nothing: what counts is `commit`."""

    def truncate(self, size: int) -> int:
        """As any file's; the file on disk follows at the next commit."""
        self._size = size
        return size

    def read(self, size: int) -> bytes:
        """As any file's, with zeros beyond its end."""
        buffer = bytearray(size)
        self.readinto(buffer)
        return bytes(buffer)

    def readinto(self, buffer: Union[bytearray, memoryview]) -> int:
        """As any file's, with zeros beyond its end, which HDF5 expects to be able to read."""
        view = memoryview(buffer).cast("B")
        first, last = self._position, self._position + len(view)
        found = os.pread(self._descriptor, len(view), first)
        view[: len(found)] = found
        view[len(found) :] = bytes(len(view) - len(found))
        if self._pages:
            for start in range(first // _PAGE * _PAGE, last, _PAGE):
                if start in self._pages:
                    left, right = max(first, start), min(last, start + _PAGE)
                    part = self._pages[start][left - start : right - start]
                    view[left - first : right - first] = part
        self._position = last
        return len(view)

    def write(self, data: Union[bytes, memoryview]) -> int:
        """
        As any file's, but never fails: HDF5 could not close after that. What went wrong is kept
        in `error` and raised by `commit`.
        """
        view = memoryview(data).cast("B")
        first = self._position
        split = int(max(0, min(len(view), self._protected - first)))
        if split:
            self._write_pages(first, view[:split])
        try:
            _write_all(self._descriptor, first + split, view[split:])
        except OSError as error:
            self.error = error
            self.abandon()
            self._write_pages(first + split, view[split:])
        self._position = first + len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def _write_pages(self, first: int, view: memoryview) -> None:
        last = first + len(view)
        for start in range(first // _PAGE * _PAGE, last, _PAGE):
            page = self._pages.get(start)
            if page is None:
                found = os.pread(self._descriptor, _PAGE, start)
                page = self._pages[start] = bytearray(found.ljust(_PAGE, b"\0"))
            left, right = max(first, start), min(last, start + _PAGE)
            page[left - start : right - start] = view[left - first : right - first]

    def _apply(self, size: int, starts: numpy.ndarray, pages: numpy.ndarray) -> None:
        for start, page in zip(starts, pages):
            _write_all(self._descriptor, int(start), memoryview(page))
        os.ftruncate(self._descriptor, size)
        os.fsync(self._descriptor)


def journal_path(path: Union[str, os.PathLike]) -> Path:
    """Where the journal of a file lies."""
    return Path(f"{os.fspath(path)}.journal")


def sync_directory(directory: Path) -> None:
    """Makes the names of files that were created, renamed or removed durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_journal(path: Path, size: int, starts: numpy.ndarray, pages: numpy.ndarray) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    with open(unfinished, "wb") as file:
        numpy.savez(file, size=numpy.int64(size), starts=starts, pages=pages)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    sync_directory(path.parent)


def _read_journal(path: Path) -> Tuple[int, numpy.ndarray, numpy.ndarray]:
    with numpy.load(path, allow_pickle=False) as journal:
        return int(journal["size"]), journal["starts"], journal["pages"]


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # Some network file systems have no locks; one writer at a time is then up to the user.
        pass


def _write_all(descriptor: int, offset: int, view: memoryview) -> None:
    while view:
        written = os.pwrite(descriptor, view, offset)
        offset, view = offset + written, view[written:]


def _whole_pages(size: int) -> float:
    return -(-size // _PAGE) * _PAGE
