"""Keeps a second process out of a folder that is being written."""

import fcntl
import os
from pathlib import Path

from elmo_plugin.util.atomic_write import UNFINISHED
from elmo_plugin.util.errors import ConfigurationError


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
        If the folder cannot be created, or another process has locked it.
    """
    try:
        # In two steps, so that the error names the folder above that cannot be created.
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
    except OSError as error:
        output = str(folder).removesuffix(UNFINISHED)
        raise ConfigurationError(
            f"{output} cannot be written: {error.filename} is not a folder and cannot be made one."
        ) from error
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    is_locked = True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        is_locked = False
    except OSError:
        # A network file system without locks; there, users must start one process only.
        pass
    # Another process may have removed the file after it was opened here.
    if is_locked and os.fstat(descriptor).st_nlink:
        return descriptor
    os.close(descriptor)
    raise ConfigurationError(
        f"{folder} is being written by another process. Wait until it ends, or name another output."
    )
