"""Reads files of `torch.save` without executing anything in them."""

import zipfile
from os import PathLike
from typing import Any, Dict, Union

import torch

from elmo_plugin.util.errors import ConfigurationError


def read_state(path: Union[str, PathLike], place: str) -> Dict[str, Any]:
    """
    Reads a state dict after checking its checksums, which `torch.load` does not look at.

    # Parameters

    path : `Union[str, PathLike]`
        A local file.
    place : `str`
        What error messages call it.

    # Returns

    `Dict[str, Any]`
        Its tensors, on disk until they are used.

    # Raises

    `ConfigurationError`
        If it is damaged, or holds more than tensors in a dictionary.
    """
    try:
        # Files written before torch 1.6 are no zip files and have no checksums.
        is_zip = zipfile.is_zipfile(path)
        if is_zip:
            _check_members(path)
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
        if not isinstance(state, dict):
            raise ValueError(f"expected a state dict, found {type(state).__name__}")
    # In files without checksums, damage leads to errors of any kind.
    except Exception as error:
        raise _unreadable(place, error) from error
    return state


def _check_members(path: Union[str, PathLike]) -> None:
    with zipfile.ZipFile(path) as opened:
        damaged = opened.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged!r} in it differs from its checksum")


def _unreadable(place: str, error: BaseException) -> ConfigurationError:
    reason = str(error).partition("\n")[0].rstrip(":. ")
    return ConfigurationError(
        f"{place} cannot be read; it is damaged, cut short, or holds more than tensors ({reason}). "
        "Copy it again."
    )
