"""Writes the weights of models, and reads them without executing anything in the files."""

import os
import pickle
import zipfile
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Union

import torch

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError

_OF_ARCHIVE, _OF_TRAINING = "weights.th", "best.th"

#: What `read_state` has read within `each_state_once`, by path; `None` outside of it.
_STATES: ContextVar[Optional[Dict[str, Dict[str, Any]]]] = ContextVar("_STATES", default=None)


def find_weights(folder: Union[str, PathLike], training: bool = True) -> Optional[Path]:
    """`weights.th` of an unpacked archive or, if `training`, `best.th` of a training run."""
    names = (_OF_ARCHIVE, _OF_TRAINING) if training else (_OF_ARCHIVE,)
    return next((Path(folder, name) for name in names if Path(folder, name).is_file()), None)


def stored_weights(
    folder: Optional[Union[str, PathLike]], *files: Union[str, PathLike]
) -> Optional[Path]:
    """
    The weights that AllenNLP is about to load into a model, from its `serialization_dir`, if any. A
    run that has `best.th` but no checkpoint starts again, so `best.th` counts only if one of
    `files`, from which the model was built, no longer exists. A URL counts as existing.
    """
    if folder is None:
        return None
    return find_weights(folder, training=any(map(_is_missing, files)))


def stored_state(
    folder: Optional[Union[str, PathLike]], *files: Union[str, PathLike]
) -> Optional[Dict[str, Any]]:
    """The state dict in `stored_weights`. Its checksums are left to what loads all of it next."""
    path = stored_weights(folder, *files)
    return None if path is None else read_state(path, str(path), check=False)


@contextmanager
def each_state_once() -> Iterator[None]:
    """`read_state` reads a file once in this context: parts of a model read its weights too."""
    token = _STATES.set({})
    try:
        yield
    finally:
        _STATES.reset(token)


def read_trained_state(folder: Union[str, PathLike], location: str) -> Dict[str, Any]:
    """The state dict of a trained model. Raises `ConfigurationError` if there is none."""
    weights = find_weights(folder)
    if weights is None:
        raise ConfigurationError(
            f"{location} holds no trained model: expected {_OF_ARCHIVE} or {_OF_TRAINING} in it. A "
            "training run writes the latter after its first validation."
        )
    return read_state(weights, f"{location} ({weights.name})")


def read_state(path: Union[str, PathLike], location: str, check: bool = True) -> Dict[str, Any]:
    """
    Reads a state dict of tensors, numbers, strings and containers of these from a local file, which
    messages call `location`.

    `check` compares the checksums, which `torch.load` does not, at the cost of reading the whole
    file. Tensors are memory-mapped if the format allows it, except the first file's within
    `each_state_once`. Raises `ConfigurationError` if the file cannot be read, is damaged, is no
    dictionary, or contains objects of other classes.
    """
    states = _STATES.get()
    if states is None:
        return _read(path, location, check, mapped=True)
    key = os.path.realpath(path)
    if key not in states:
        # RAM holds one file. Others, of archives that its settings name, are mapped.
        states[key] = _read(path, location, check, mapped=bool(states))
    # Callers change what they get.
    return dict(states[key])


def _read(path: Union[str, PathLike], location: str, check: bool, mapped: bool) -> Dict[str, Any]:
    try:
        with open(path, "rb") as file:
            # Files of torch before 1.6 are not zip files and have no checksums.
            is_zip = zipfile.is_zipfile(file)
            damaged = zipfile.ZipFile(file).testzip() if is_zip and check else None
            if damaged is not None:
                raise ValueError(f"{damaged!r} in it does not match its checksum")
            file.seek(0)
            # To map a file into memory, torch opens it by its name. On Windows, the folder of an
            # unpacked archive could then not be removed.
            mapped = mapped and is_zip and os.name != "nt"
            opened = path if mapped else file
            state = torch.load(opened, map_location="cpu", weights_only=True, mmap=mapped)
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise ValueError(
                f"expected a state dict of tensors and their names, found {type(state).__name__}"
            )
        return state
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


def save_atomically(state: Any, path: Union[str, PathLike]) -> None:
    """`torch.save` through `atomic_write`."""
    with atomic_write(path) as unfinished, open(unfinished, "wb") as opened:
        try:
            torch.save(state, opened)
        except RuntimeError as error:
            # After a full disk or an interruption torch complains about the size of the file.
            raise error.__context__ or error from None


def with_prefix(prefix: str, state: Dict[str, Any]) -> Dict[str, Any]:
    """The part of a state dict whose names begin with a prefix, which is removed."""
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


def _is_missing(file: Union[str, PathLike]) -> bool:
    path = os.fspath(file).removeprefix("file://")
    return "://" not in path and not os.path.exists(os.path.expanduser(path))
