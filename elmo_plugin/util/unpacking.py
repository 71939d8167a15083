"""Unpacks untrusted archives, and reads their configuration."""

import json
import os
import shutil
import tarfile
import tempfile
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterator, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import NO_SPACE, local_path

_BLOCK = 1 << 20
_MAX_FOLDERS = 100


def unpack(path: Union[str, PathLike], folder: Union[str, PathLike], location: str) -> None:
    """
    Unpacks a tar file, compressed or not, into an empty folder, and verifies its checksum. Writes
    nothing outside of the folder. Raises `ConfigurationError`, which calls the file `location`, if
    it is damaged, contains links, devices or a path outside of the folder, or if the disk is full.
    """
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                target = _checked_target(member, folder, location)
                if member.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(member)
                assert content is not None, "only links and devices have no content"
                with open(target, "wb") as file:
                    shutil.copyfileobj(content, file, _BLOCK)
            # Read to the end of the compressed stream, where its checksum is.
            while archive.fileobj.read(_BLOCK):
                pass
    except (ConfigurationError, MemoryError):
        raise
    # A damaged header can cause any exception.
    except Exception as error:
        reason = str(error).partition("\n")[0][:200].rstrip(":. ")
        problem = f"read; it is damaged, cut short, or no model.tar.gz ({reason}). Copy it again."
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
