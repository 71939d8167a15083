"""Unpacks untrusted archives, and reads their configuration."""

import json
import os
import tarfile
import tempfile
import zipfile
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterator, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import NO_SPACE, local_path

_BLOCK = 1 << 20


class _Header(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Any:
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            # `tarfile` takes a damaged header for the end of the archive, too.
            is_end = type(error).__name__ in ("EOFHeaderError", "EmptyHeaderError")
            raise (error if is_end else tarfile.ReadError(str(error))) from None


def unpack(path: Union[str, PathLike], folder: Union[str, PathLike], location: str) -> None:
    """
    Unpacks a tar file, compressed or not, into an empty folder, and verifies its checksum. Writes
    nothing outside of the folder. Raises `ConfigurationError`, which calls the file `location`, if
    it is damaged, contains links, devices or a path outside of the folder, or if the disk is full.
    """
    with (
        _one_sentence(folder, location, "model.tar.gz"),
        tarfile.open(path, tarinfo=_Header) as archive,
    ):
        # Python before 3.11.4 has no filters.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        for member in archive:
            # AllenNLP writes no links, and through links an archive could reach other files. At a
            # negative size, `tarfile` would read the same header again and again.
            is_safe = (member.isfile() or member.isdir()) and member.size >= 0
            if not is_safe or ".." in member.name.split("/"):
                raise ConfigurationError(
                    f"{location} is refused: {member.name[:200]!r} in it is a link or a device, of "
                    "negative size, or leads out of the archive."
                )
            # Like tar, reads an absolute path as one in the folder.
            member.name = member.name.lstrip("/")
            archive.extract(member, folder, set_attrs=False)
        # Read to the end of the compressed stream, where its checksum is.
        while archive.fileobj.read(_BLOCK):
            pass


def unpack_zip(path: Union[str, PathLike], folder: Union[str, PathLike], location: str) -> None:
    """Unpacks a zip file like `unpack`. Links in it become files, and paths stay in the folder."""
    with _one_sentence(folder, location, "zip file"), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            # Programs of Windows separate folders so.
            member.filename = member.filename.replace("\\", "/")
            archive.extract(member, folder)


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
