"""Folders with all files of a biLM."""

import os
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional, Type, Union

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.arrays import hdf5_package
from elmo_plugin.bilm.files.find import find_bilm
from elmo_plugin.bilm.files.kinds import CONFIG_FILE, SAFETENSORS_FILE, WEIGHT_FILES
from elmo_plugin.bilm.files.layout import WEIGHT_FILE, save_weights
from elmo_plugin.bilm.files.load import build
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILES, SoftmaxWeights, save_softmax
from elmo_plugin.bilm.options import OPTIONS_FILE
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE, write_vocabulary
from elmo_plugin.util.atomic_write import atomic_write, remove_abandoned, unfinished_suffix
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded

# Those of another format would be read beside new ones.
_EXPORTED = (OPTIONS_FILE, *WEIGHT_FILES[:2], *SOFTMAX_FILES, VOCABULARY_FILE)


def from_pretrained(
    cls: Type[Bilm],
    name: Union[str, PathLike],
    revision: Optional[str] = None,
    token: Optional[str] = None,
    **settings: Any,
) -> Bilm:
    """
    Loads a biLM from whatever `name` is, see `find_bilm`; unlike `load_bilm`, also a forward-only
    one. For a repository of the Hugging Face Hub, which needs the package huggingface_hub,
    `revision` is a branch, tag or commit, and `token` the access token for a private one.
    `settings` are other arguments of the constructor, such as `warm_up`. Raises
    `ConfigurationError` if there is no such biLM, or a file is missing, damaged or does not fit.
    """
    with find_bilm(name, revision=revision, token=token) as found:
        return build(found.options, found.read, cls, source=str(name), **settings)


def save_pretrained(bilm: Bilm, folder: Union[str, PathLike], dtype: str = "float32") -> None:
    """
    Writes `config.json`, `model.safetensors` and, with token embeddings, `vocabulary.txt`. For
    `dtype` and errors see `save_weights`.
    """
    folder = expanded(folder)
    _save_files(bilm, folder / CONFIG_FILE, folder / SAFETENSORS_FILE, dtype)


def save_bilm(
    bilm: Bilm,
    folder: Union[str, PathLike],
    softmax: Optional[SoftmaxWeights] = None,
    dtype: str = "float32",
    force: bool = False,
) -> List[Path]:
    """
    Writes `options.json` and `weights.hdf5` in the layout of the published biLMs and returns the
    files: also `softmax.hdf5` for a `softmax`, and `vocabulary.txt` for a softmax or token
    embeddings. No file appears before all of them are complete.

    `force` replaces all these files, and keeps others in the folder. For `dtype` and its errors see
    `save_weights`. Raises `ConfigurationError` if a file exists without `force`, the softmax
    does not fit, or h5py is missing.
    """
    folder = expanded(folder)
    check_export_folder(folder, force)
    changes: Dict[str, Any] = {}
    if softmax is not None:
        softmax.check_fit(bilm.options, "The softmax")
        if bilm.options.words not in (None, tuple(softmax.words)):
            raise ConfigurationError(
                "The softmax does not fit the token embeddings: expected the same words in the "
                "same order, because one vocabulary.txt serves both, found others."
            )
        changes["n_tokens_vocab"] = len(softmax.words)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A folder's parent may be on another disk, to which a file cannot be renamed.
    above = folder if folder.is_dir() else folder.parent
    remove_abandoned(above)
    with TemporaryDirectory(unfinished_suffix(), "elmo-export-", above) as temporary:
        # Not the temporary folder itself, which only its owner may read.
        unfinished = Path(temporary, "files")
        _save_files(bilm, unfinished / OPTIONS_FILE, unfinished / WEIGHT_FILE, dtype, **changes)
        if softmax is not None:
            save_softmax(softmax, unfinished, dtype)
        _move(unfinished, folder)
    return [folder / name for name in _EXPORTED if (folder / name).exists()]


def check_export_folder(folder: Union[str, PathLike], force: bool) -> None:
    """Raises the `ConfigurationError` of `save_bilm` for the folder, before anything is written."""
    hdf5_package()
    folder = expanded(folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file; expected a folder, existing or new.")
    there = [name for name in _EXPORTED if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} already holds {', '.join(there)}. Choose another folder, or replace them "
            "with `force` (--force)."
        )


def _save_files(
    bilm: Bilm, options_file: Path, weight_file: Path, dtype: str, **changes: Any
) -> None:
    """Writes weights, words of token embeddings, and options, with `changes`."""
    save_weights(bilm, weight_file, dtype)
    if bilm.options.words is not None:
        words = [(word, None) for word in bilm.options.words]
        write_vocabulary(words, options_file.with_name(VOCABULARY_FILE))
    with atomic_write(options_file) as unfinished:
        unfinished.write_bytes(bilm.options.to_json(**changes).encode())


def _move(unfinished: Path, folder: Path) -> None:
    if not folder.exists():
        # One rename, so that all files appear at once.
        os.rename(unfinished, folder)
        return
    # A kill must not leave files of two biLMs side by side.
    for name in _EXPORTED:
        (folder / name).unlink(missing_ok=True)
    # The options last, without which the others are not read.
    for name in reversed(_EXPORTED):
        if (unfinished / name).exists():
            os.replace(unfinished / name, folder / name)
