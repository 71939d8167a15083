"""Reads files of `torch.save` without executing anything in them."""

import zipfile
from os import PathLike
from typing import Any, Dict, Union

import torch

from elmo_plugin.util.errors import ConfigurationError


def read_state(path: Union[str, PathLike], place: str) -> Dict[str, Any]:
    """
    Reads a state dict, and verifies its checksums, which `torch.load` ignores.

    # Parameters

    path : `Union[str, PathLike]`
        A local file.
    place : `str`
        The name of the file in error messages.

    # Returns

    `Dict[str, Any]`
        The tensors, memory-mapped if the format allows it.

    # Raises

    `ConfigurationError`
        If it is damaged, or contains anything but a dictionary of tensors.
    """
    try:
        # Files of torch before 1.6 are not zip files and have no checksums.
        is_zip = zipfile.is_zipfile(path)
        if is_zip:
            _check_members(path)
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
        if not isinstance(state, dict):
            raise ValueError(f"expected a state dict, found {type(state).__name__}")
    # In files without checksums, damage can cause any exception.
    except Exception as error:
        raise _unreadable(place, error) from error
    return state


def _check_members(path: Union[str, PathLike]) -> None:
    with zipfile.ZipFile(path) as opened:
        damaged = opened.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged!r} in it does not match its checksum")


def _unreadable(place: str, error: BaseException) -> ConfigurationError:
    reason = str(error).partition("\n")[0].rstrip(":. ")
    return ConfigurationError(
        f"{place} cannot be read; it is damaged, cut short, or holds more than tensors ({reason}). "
        "Copy it again."
    )
