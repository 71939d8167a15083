"""Keeps a second process out of a folder that is being written."""

import fcntl
import os
import time
from pathlib import Path
from typing import Callable, TypeVar

from elmo_plugin.util.atomic_write import UNFINISHED
from elmo_plugin.util.errors import ConfigurationError

# Seconds between two attempts to lock a folder.
_SECONDS = 0.5

T = TypeVar("T")


class FolderLocked(ConfigurationError):
    """Another process has locked the folder."""


def lock_folder(folder: Path) -> int:
    """
    Creates a folder and locks the file `lock` in it, until the process ends or closes that file.

    # Parameters

    folder : `Path`
        Created with its parents if needed.

    # Returns

    `int`
        The file descriptor of the lock, to be closed by `os.close`.

    # Raises

    `ConfigurationError`
        If the folder cannot be created or written in.
    `FolderLocked`
    """
    output = str(folder).removesuffix(UNFINISHED)
    try:
        # In two steps, so that the error names the folder above that cannot be created.
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{output} cannot be written: {error.filename} is not a folder, nor can it be created."
        ) from error
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise ConfigurationError(
            f"{output} cannot be written: {error.strerror} ({error.filename})."
        ) from error
    is_locked = True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_locked = False
    except OSError:
        # A network file system without locks, where users must start one process only.
        pass
    # Another process may have removed the file after it was opened here.
    if is_locked and os.fstat(descriptor).st_nlink:
        return descriptor
    os.close(descriptor)
    raise FolderLocked(
        f"{folder} is being written by another process. Wait until it ends, or name another output."
    )


def wait_for_lock(function: Callable[[], T], timeout: float) -> T:
    """
    Calls a function that locks a folder, again while it raises `FolderLocked`, for `timeout`
    seconds: a process whose parent was killed takes some time to end.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return function()
        except FolderLocked:
            if time.monotonic() > deadline:
                raise
            time.sleep(_SECONDS)
