import errno
import os
import time
from pathlib import Path
from typing import Callable, TypeVar

from filelock import FileLock, Timeout

from elmo_plugin.util.atomic_write import UNFINISHED
from elmo_plugin.util.errors import ConfigurationError

# Of network file systems without locks, where users must start one process only.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)
# Seconds between two attempts to lock a folder.
_SECONDS = 0.5

T = TypeVar("T")


class FolderLocked(ConfigurationError):
    """Another process has locked the folder."""


class FolderLock:
    """The lock of a folder, held until `release` or the end of the process."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock
        held = lock._context.lock_file_fd
        #: For a child that keeps the lock if it outlives this process. A copy, because `FileLock`
        #: closes its own descriptor in forked processes; it has none without locks.
        self.descriptor: int = (
            os.open(lock.lock_file, os.O_RDWR | os.O_CREAT, 0o666) if held is None else os.dup(held)
        )

    def release(self) -> None:
        os.close(self.descriptor)
        self._lock.release()


def lock_folder(folder: Path) -> FolderLock:
    """
    Creates a folder, with its parents, and locks the file `lock` in it. Raises `FolderLocked` if
    another process has locked it, `ConfigurationError` if it cannot be created or written in.
    """
    lock = FileLock(folder / "lock", thread_local=False)
    try:
        # In two steps, so that the error names the folder above that cannot be created.
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        locked = FolderLock(lock)
        # Another process may have removed the file after it was opened here.
        if os.fstat(locked.descriptor).st_nlink:
            return locked
        locked.release()
    except Timeout:
        pass
    except OSError as error:
        output = str(folder).removesuffix(UNFINISHED)
        reason = f"{error.strerror} ({error.filename})."
        if isinstance(error, (FileExistsError, NotADirectoryError)):
            reason = f"{error.filename} is not a folder, nor can it be created."
        raise ConfigurationError(f"{output} cannot be written: {reason}") from error
    raise FolderLocked(
        f"{folder} is being written by another process. Wait until it ends, or name another output."
    )


def wait_for_lock(function: Callable[[], T], timeout: float) -> T:
    """Retries `function` until the folder that it locks is free, for at most `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return function()
        except FolderLocked:
            if time.monotonic() > deadline:
                raise
            # A process whose parent was killed takes some time to end.
            time.sleep(_SECONDS)
