"""Writes the weights of models, and reads them without executing anything in the files."""

import os
import pickle
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Optional, Union

import torch

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError

_OF_ARCHIVE, _OF_TRAINING = "weights.th", "best.th"


def find_weights(folder: Union[str, PathLike], training: bool = True) -> Optional[Path]:
    """
    The file of weights of a trained AllenNLP model: `weights.th` in an unpacked archive, or
    `best.th` in the folder of a training run if `training` is true. `None` if there is none.
    """
    names = (_OF_ARCHIVE, _OF_TRAINING) if training else (_OF_ARCHIVE,)
    return next((Path(folder, name) for name in names if Path(folder, name).is_file()), None)


def stored_weights(
    folder: Optional[Union[str, PathLike]], *files: Union[str, PathLike]
) -> Optional[Path]:
    """
    The weights that AllenNLP is about to load into a model, or `None` if it loads none. Those of a
    training run count only if one of `files`, from which the model was built, no longer exists: a
    run that has `best.th` but no checkpoint starts again.

    # Parameters

    folder : `Optional[Union[str, PathLike]]`
        The model's `serialization_dir`.
    files : `Union[str, PathLike]`
        Local paths or URLs, see `local_path`. A URL counts as existing.
    """
    if folder is None:
        return None
    return find_weights(folder, training=any(map(_is_missing, files)))


def trained_weights(folder: Union[str, PathLike], location: str) -> Path:
    """
    As `find_weights`.

    # Raises

    `ConfigurationError`
        If the folder holds neither file; `location` is what the message calls it.
    """
    weights = find_weights(folder)
    if weights is None:
        raise ConfigurationError(
            f"{location} holds no trained model: expected {_OF_ARCHIVE} or {_OF_TRAINING} in it. A "
            "training run writes the latter after its first validation."
        )
    return weights


def read_state(path: Union[str, PathLike], location: str, check: bool = True) -> Dict[str, Any]:
    """
    Reads a state dict.

    # Parameters

    path : `Union[str, PathLike]`
        A local file.
    location : `str`
        The name of the file in error messages.
    check : `bool`, optional (default = `True`)
        Compare the checksums of the file, which `torch.load` does not, at the cost of reading all
        of it.

    # Returns

    `Dict[str, Any]`
        The tensors, memory-mapped if the format allows it, and whatever numbers, strings and
        containers of them the file holds beside tensors.

    # Raises

    `ConfigurationError`
        If it cannot be read, is damaged, is no dictionary, or contains objects of other classes.
    """
    try:
        # Files of torch before 1.6 are not zip files and have no checksums.
        is_zip = zipfile.is_zipfile(path)
        if is_zip and check:
            _check_members(path)
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise ValueError(
                f"expected a state dict of tensors and their names, found {type(state).__name__}"
            )
    except MemoryError:
        raise
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise ConfigurationError(f"{location} cannot be read: {error.strerror}.") from error
    # In files without checksums, damage can cause any exception.
    except Exception as error:
        reason = str(error).partition("\n")[0].rstrip(":. ") or type(error).__name__
        if isinstance(error, pickle.UnpicklingError):
            # torch's message, partly in bold, advises to execute what is in the file.
            reason = "such as a pickled class"
        raise ConfigurationError(
            f"{location} cannot be read; it is damaged, cut short, or holds more than tensors "
            f"({reason}). Copy it again, or save a state dict of tensors alone."
        ) from error
    return state


def save_atomically(state: Any, path: Union[str, PathLike]) -> None:
    """`torch.save` through `atomic_write`."""
    with atomic_write(path) as unfinished, open(unfinished, "wb") as opened:
        try:
            torch.save(state, opened)
        except RuntimeError as error:
            # After a full disk or an interruption torch complains about the size of the file.
            raise error.__context__ or error from None


def with_prefix(prefix: str, state: Dict[str, Any]) -> Dict[str, Any]:
    """The part of a state dict whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


def _is_missing(file: Union[str, PathLike]) -> bool:
    path = os.fspath(file).removeprefix("file://")
    return "://" not in path and not os.path.exists(os.path.expanduser(path))


def _check_members(path: Union[str, PathLike]) -> None:
    with zipfile.ZipFile(path) as opened:
        damaged = opened.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged!r} in it does not match its checksum")
