import glob
import json
import os
import shutil
import socket
import tempfile
from contextlib import contextmanager, suppress
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, Iterator, Optional, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import NO_SPACE, expanded, is_pipe

#: The suffix of a file while it is written.
UNFINISHED = ".unfinished"


@contextmanager
def atomic_write(path: Union[str, PathLike]) -> Iterator[Path]:
    """
    Yields the path of a temporary file in the same folder, which is synced and renamed to `path` at
    the end. `path` is therefore either the complete new file or unchanged, also if other processes
    write it. Creates the folder if needed, expands `~`, and follows a symbolic link. A pipe or
    device receives a copy at the end. After an exception the temporary file is removed; after a
    kill, by the next process that writes into the folder. An `OSError` names `path`, or its folder
    if that cannot be created.
    """
    path = expanded(path)
    if is_pipe(path):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder, "output")
            with open(Path(folder, "output"), "rb") as written, open(path, "wb") as pipe:
                shutil.copyfileobj(written, pipe)
        return
    path = Path(os.path.realpath(path)) if path.is_symlink() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent)
    unfinished = Path(f"{path}{unfinished_suffix()}")
    try:
        yield unfinished
        # Windows syncs only files that are open for writing.
        with open(unfinished, "r+b") as written:
            os.fsync(written.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        # The error of a full disk names no file.
        is_full = error.filename is None and error.errno in NO_SPACE
        if str(error.filename) != str(unfinished) and not is_full:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            unfinished.unlink()


def unfinished_suffix() -> str:
    """The suffix of files and folders that this process has not finished."""
    return f".{os.getpid()}{_computer()}{UNFINISHED}"


@lru_cache(maxsize=None)
def _computer() -> str:
    # Containers may share a host name, but each has its own process numbers.
    processes = Path("/proc/self/ns/pid")
    return f"@{socket.gethostname()}-{processes.stat().st_ino if processes.exists() else 0}"


@lru_cache(maxsize=None)
def remove_abandoned(folder: Path) -> None:
    """
    Removes what killed processes of this computer left unfinished. Files of other computers stay,
    because their processes may still run. On Windows all stay: `os.kill` would stop processes.
    """
    if os.name == "nt":
        return
    of_computer = f"{_computer()}{UNFINISHED}"
    for path in folder.glob(f"*.*{glob.escape(of_computer)}"):
        number = path.name.removesuffix(of_computer).rpartition(".")[2]
        # Suppressed if the process is another user's, or the file another program's.
        with suppress(OSError, OverflowError, ValueError):
            try:
                os.kill(int(number), 0)
            except ProcessLookupError:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def write_json(path: Union[str, PathLike], content: Any, indent: Optional[int] = 2) -> None:
    """Writes JSON and a line end with `atomic_write`."""
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(f"{json.dumps(content, indent=indent)}\n".encode())


def write_json_rows(path: Union[str, PathLike], content: Any, first_key: str) -> None:
    """Writes JSON that can be diffed: a line for each object whose first key is `first_key`."""
    row = f'{{"{first_key}":'
    text = json.dumps(content, ensure_ascii=False).replace(f", {row}", f",\n{row}")
    with atomic_write(path) as unfinished:
        # The name of a file may have bytes that are not UTF-8.
        unfinished.write_bytes(f"{text}\n".encode(errors="backslashreplace"))


def check_output(path: Union[str, PathLike], force: bool) -> Path:
    """
    Returns `path` with `~` expanded. Raises `ConfigurationError` if it is a folder, cannot be
    written, or exists and `force` is false.
    """
    path = expanded(path)
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder; expected the name of a file to write.")
    if is_pipe(path):
        # No temporary file is created beside a pipe.
        return path
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise ConfigurationError(f"{path} cannot be written: {above} is not a folder.")
    if not os.access(above, os.W_OK):
        raise ConfigurationError(f"{path} cannot be written: you may not write in {above}.")
    if path.exists() and not force:
        raise ConfigurationError(f"{path} exists. Give --force to replace it, or another name.")
    return path


def resumable_file(path: Union[str, PathLike]) -> Path:
    """Expands `~` and follows a link. Raises `ConfigurationError` for a pipe or device."""
    path = expanded(path)
    if is_pipe(path):
        raise ConfigurationError(
            f"{path} is a pipe or device; expected the name of a file, so that an interrupted "
            "command can be continued."
        )
    return Path(os.path.realpath(path)) if path.is_symlink() else path
