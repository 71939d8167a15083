"""Unpacks untrusted archives."""

import lzma
import os
import shutil
import tarfile
import tempfile
import zlib
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Iterator, Union

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path

_BLOCK = 1 << 20


def unpack(path: Union[str, PathLike], folder: Union[str, PathLike], place: str) -> None:
    """
    Unpacks a tar file, compressed or not, and checks the checksum of its compression.

    # Parameters

    path : `Union[str, PathLike]`
        A local file.
    folder : `Union[str, PathLike]`
        An empty folder; outside of it nothing is written.
    place : `str`
        What error messages call the archive.

    # Raises

    `ConfigurationError`
        If it is damaged or no tar file; if it holds anything but files and folders, or a path that
        leads out of the folder; or if there is no room for it.
    """
    try:
        with tarfile.open(path) as archive:
            archive.extractall(folder, _checked_members(archive, folder, place), filter="data")
            # A tar file ends before its compressed stream does, where the checksum stands.
            while archive.fileobj.read(_BLOCK):
                pass
    except tarfile.FilterError as error:
        raise ConfigurationError(
            f"{place} is refused: a path in it leads out of the archive ({error})."
        ) from error
    except (
        tarfile.TarError,
        EOFError,
        zlib.error,
        lzma.LZMAError,
        OSError,
        # A damaged header can ask for anything.
        ValueError,
        OverflowError,
    ) as error:
        reason = str(error).partition("\n")[0].rstrip(":. ")
        raise ConfigurationError(
            f"{place} cannot be read; it is damaged, cut short, or no model.tar.gz ({reason}). "
            "Copy it again."
        ) from error


@contextmanager
def unpacked(archive: Union[str, PathLike]) -> Iterator[Path]:
    """
    The folder of a training run, or a temporary one with what an archive contains.

    # Parameters

    archive : `Union[str, PathLike]`
        A `model.tar.gz` or a folder: a local path or a URL, see
        `local_path`.

    # Raises

    `ConfigurationError`
        If it does not exist, and as `unpack` does.
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


def _checked_members(
    archive: tarfile.TarFile, folder: Union[str, PathLike], place: str
) -> Iterator[tarfile.TarInfo]:
    for member in archive:
        # AllenNLP writes no links, and following them is how archives reach other files.
        if not (member.isfile() or member.isdir()):
            raise ConfigurationError(
                f"{place} is refused: expected files and folders in it, found that "
                f"{member.name!r} is a link or a device."
            )
        free = shutil.disk_usage(folder).free
        if member.size > free:
            raise ConfigurationError(
                f"{place} holds {member.name!r} of {member.size / 1e9:.1f} GB, and {folder} has "
                f"room for {free / 1e9:.1f} GB. Name a larger folder in TMPDIR."
            )
        yield member
