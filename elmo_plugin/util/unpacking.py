"""Unpacks untrusted archives, and reads their configuration."""

import json
import os
import shutil
import tarfile
import tempfile
import zipfile
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, Any, Dict, Iterator, Optional, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import NO_SPACE, local_path

_BLOCK = 1 << 20
_MAX_FOLDERS = 100
# How much larger than itself a zip file may be when it is unpacked, beyond a gigabyte.
_MAX_GROWTH = 100
_GIGABYTE = 1 << 30


def unpack(path: Union[str, PathLike], folder: Union[str, PathLike], location: str) -> None:
    """
    Unpacks a tar file, compressed or not, into an empty folder, and verifies its checksum. Writes
    nothing outside of the folder. Raises `ConfigurationError`, which calls the file `location`, if
    it is damaged, contains links, devices or a path outside of the folder, or if the disk is full.
    """
    with _one_sentence(folder, location, "model.tar.gz"), tarfile.open(path) as archive:
        for member in archive:
            target = _checked_target(member, folder, location)
            content = None if member.isdir() else archive.extractfile(member)
            _write(target, content)
        # Read to the end of the compressed stream, where its checksum is.
        while archive.fileobj.read(_BLOCK):
            pass


def unpack_zip(path: Union[str, PathLike], folder: Union[str, PathLike], location: str) -> None:
    """
    Unpacks a zip file like `unpack`. Also raises `ConfigurationError` if it would grow to more than
    a hundred times its size and a gigabyte.
    """
    with _one_sentence(folder, location, "zip file"), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        size = sum(member.file_size for member in members)
        if size > max(_GIGABYTE, _MAX_GROWTH * os.path.getsize(path)):
            raise ConfigurationError(
                f"{location} is refused: unpacked, it would be {size / 1e9:.1f} GB, more than "
                f"{_MAX_GROWTH} times its size. Unpack it yourself if you trust it."
            )
        for member in members:
            # Has the same checks; a link in a zip file is unpacked as a file with its target.
            name = member.filename.replace("\\", "/")
            checked = tarfile.TarInfo(name.rstrip("/"))
            checked.size = member.file_size
            target = _checked_target(checked, folder, location)
            # Reads no more than `file_size` bytes, and compares the checksum.
            content = None if name.endswith("/") else archive.open(member)
            _write(target, content)


def _write(target: Path, content: Optional[IO[bytes]]) -> None:
    """Creates the file, or without `content` the folder."""
    folder = target if content is None else target.parent
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        with content, open(target, "wb") as file:
            shutil.copyfileobj(content, file, _BLOCK)


@contextmanager
def _one_sentence(folder: Union[str, PathLike], location: str, format: str) -> Iterator[None]:
    """Turns the errors of a damaged archive and of a full disk into `ConfigurationError`."""
    try:
        yield
    except (ConfigurationError, MemoryError):
        raise
    # A damaged header can cause any exception.
    except Exception as error:
        reason = str(error).partition("\n")[0][:200].rstrip(":. ")
        problem = f"read; it is damaged, cut short, or no {format} ({reason}). Copy it again."
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            problem = f"unpacked into {folder}: {reason}. Set TMPDIR to a folder on a larger disk."
        elif isinstance(error, PermissionError):
            problem = f"read: {error.strerror}."
        raise ConfigurationError(f"{location} cannot be {problem}") from error


@contextmanager
def unpacked(archive: Union[str, PathLike]) -> Iterator[Path]:
    """
    Yields the folder of a training run or, temporarily, of the contents of a `model.tar.gz`. See
    `local_path` for paths, and `unpack` for errors.
    """
    try:
        path = local_path(archive)
    except FileNotFoundError:
        raise ConfigurationError(
            f"Archive {archive} does not exist. Expected a model.tar.gz or the folder of a "
            "training run."
        ) from None
    if os.path.isdir(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack(path, folder, str(archive))
        yield Path(folder)


def read_config(folder: Path, location: str) -> Dict[str, Any]:
    """The `config.json` of a trained model; `{}` if missing, `ConfigurationError` if damaged."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{location}: its config.json is damaged: {error}.") from error
    return config if isinstance(config, dict) else {}


def _checked_target(member: tarfile.TarInfo, folder: Union[str, PathLike], location: str) -> Path:
    """The path in the folder to which a member is unpacked, if it is safe."""
    root, name = os.path.realpath(folder), member.name[:200]
    # Like tar, reads an absolute path as one in the folder.
    target = os.path.realpath(os.path.join(root, member.name.lstrip("/")))
    is_safe = (
        # AllenNLP writes no links, and through links an archive could reach other files.
        (member.isfile() or member.isdir())
        and os.path.commonpath([root, target]) == root
        # Deeper folders could not be deleted again.
        and member.name.count("/") <= _MAX_FOLDERS
        # `tarfile` would read the same header again and again.
        and member.size >= 0
    )
    if not is_safe:
        raise ConfigurationError(
            f"{location} is refused: {name!r} in it is a link or a device, of negative size, in "
            f"more than {_MAX_FOLDERS} folders, or leads out of the archive."
        )
    free = shutil.disk_usage(folder).free
    if member.size > free:
        raise ConfigurationError(
            f"{location} holds {name!r} of {member.size / 1e9:.1f} GB, but {folder} has only "
            f"{free / 1e9:.1f} GB free. Set TMPDIR to a folder on a larger disk."
        )
    return Path(target)
