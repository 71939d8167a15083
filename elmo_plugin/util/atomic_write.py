"""Writes files that are complete or absent."""

import json
import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, Iterator, Optional, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import NO_SPACE, is_pipe

#: The suffix of a file while it is written.
UNFINISHED = ".unfinished"


@contextmanager
def atomic_write(path: Union[str, PathLike]) -> Iterator[Path]:
    """
    Yields the path of a temporary file in the same folder, which is synced and renamed to `path` at
    the end, so that `path` is either the complete new file or unchanged, also if other processes
    write it. Creates the folder if needed. After an exception the temporary file is removed.

    # Parameters

    path : `Union[str, PathLike]`
        The file to write. Of a symbolic link, the file that it names; a pipe or device receives a
        copy at the end.

    # Raises

    `OSError`
        If it cannot be written; the error names `path`, or its folder if that cannot be created.
    """
    if is_pipe(path):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder, "output")
            with open(Path(folder, "output"), "rb") as written, open(path, "wb") as pipe:
                shutil.copyfileobj(written, pipe)
        return
    # `Path` removes a slash at the end.
    path = Path(os.path.realpath(path) if os.path.islink(path) else path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(f"{path}.{os.getpid()}{UNFINISHED}")
    try:
        yield unfinished
        with open(unfinished, "rb") as written:
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


def write_json(path: Union[str, PathLike], content: Any, indent: Optional[int] = 2) -> None:
    """Writes JSON and a line end with `atomic_write`."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(f"{json.dumps(content, indent=indent)}\n", encoding="utf-8")


def write_json_rows(path: Union[str, PathLike], content: Any, first_key: str) -> None:
    """
    Writes JSON with `atomic_write`, each object whose first key is `first_key` on a line of its
    own, so that two versions of the file can be compared.
    """
    row = f'{{"{first_key}":'
    text = json.dumps(content, ensure_ascii=False).replace(f", {row}", f",\n{row}")
    with atomic_write(path) as unfinished:
        # The name of a file may have bytes that are not UTF-8.
        unfinished.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def check_output(path: Path, force: bool) -> None:
    """
    Raises `ConfigurationError` if `path` is a folder, if one of its parents is a file or may not be
    written in, or if it exists and `force` is false.
    """
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder; expected the name of a file to write.")
    if is_pipe(path):
        # Nothing is created beside it.
        return
    above = next(parent for parent in path.absolute().parents if parent.exists())
    if not above.is_dir():
        raise ConfigurationError(f"{path} cannot be written: {above} is not a folder.")
    if not os.access(above, os.W_OK):
        raise ConfigurationError(f"{path} cannot be written: you may not write in {above}.")
    if path.exists() and not force:
        raise ConfigurationError(f"{path} exists. Give --force to replace it, or another name.")


def resumable_file(path: Path) -> Path:
    """
    The file to write in several calls: `path`, or what it names if it is a symbolic link. Raises
    `ConfigurationError` if it is a pipe or device.
    """
    if is_pipe(path):
        raise ConfigurationError(
            f"{path} is a pipe or device; expected the name of a file, so that an interrupted "
            "command can be continued."
        )
    return Path(os.path.realpath(path)) if path.is_symlink() else path
