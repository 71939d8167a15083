"""Writes a trained biLM as files in the layout of the published ones."""

import os
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Optional, Union

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.io.hub import save_files
from elmo_plugin.bilm.io.softmax_files import SOFTMAX_FILE, SoftmaxWeights, save_softmax
from elmo_plugin.bilm.io.weight_files import WEIGHT_FILE
from elmo_plugin.bilm.options import OPTIONS_FILE, BilmOptions
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE
from elmo_plugin.util.atomic_write import remove_abandoned, unfinished_suffix
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded

_EXPORTED = (OPTIONS_FILE, WEIGHT_FILE, SOFTMAX_FILE, VOCABULARY_FILE)


def save_bilm(
    bilm: Bilm,
    folder: Union[str, PathLike],
    softmax: Optional[SoftmaxWeights] = None,
    dtype: str = "float32",
    force: bool = False,
) -> List[Path]:
    """
    Writes `options.json` and `weights.hdf5` in the layout of the published biLMs; with a softmax
    also `softmax.hdf5`; with a softmax or token embeddings also `vocabulary.txt`. No file appears
    before all of them are complete.

    # Parameters

    bilm : `Bilm`
    folder : `Union[str, PathLike]`
        Created if needed.
    softmax : `Optional[SoftmaxWeights]`, optional (default = `None`)
        The output layer of the language model.
    dtype : `str`, optional (default = `"float32"`)
        See `save_weights`, also for errors.
    force : `bool`, optional (default = `False`)
        Replace these files, including those of a softmax; other files in the folder are kept.

    # Returns

    `List[Path]`
        The files.

    # Raises

    `ConfigurationError`
        If one of the files exists and `force` is false, or the softmax does not fit.
    """
    folder = expanded(folder)
    check_export_folder(folder, force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A folder's parent may be on another disk, to which a file cannot be renamed.
    above = folder if folder.is_dir() else folder.parent
    remove_abandoned(above)
    with TemporaryDirectory(unfinished_suffix(), "elmo-export-", above) as temporary:
        # Not the temporary folder itself, which only its owner may read.
        unfinished = Path(temporary, "files")
        unfinished.mkdir()
        changes: Dict[str, Any] = {}
        if softmax is not None:
            softmax.check_fit(bilm.options, "The softmax")
            if bilm.options.words not in (None, tuple(softmax.words)):
                raise ConfigurationError(
                    "The softmax does not fit the token embeddings: expected the same words in the "
                    "same order, because one vocabulary.txt serves both, found others."
                )
            changes["n_tokens_vocab"] = len(softmax.words)
        save_files(bilm, unfinished / OPTIONS_FILE, unfinished / WEIGHT_FILE, dtype, **changes)
        if softmax is not None:
            save_softmax(softmax, unfinished, dtype)
        _move(unfinished, folder)
    return [folder / name for name in _EXPORTED if (folder / name).exists()]


def allennlp_obstacle(options: BilmOptions) -> Optional[str]:
    """The first setting that AllenNLP's `Elmo` does not support; `None` if it supports all."""
    cnn, lstm = options.char_cnn, options.lstm
    if cnn is None:
        return "there is no `char_cnn`"
    obstacles = [
        (not options.bidirectional, "`bidirectional` is false"),
        (not cnn.projection, "`char_cnn.projection` is false"),
        (lstm.projection_dim is None, "`lstm.projection_dim` is null"),
        (not lstm.use_skip_connections, "`lstm.use_skip_connections` is false"),
        (cnn.character_unit != "byte", f"`char_cnn.character_unit` is {cnn.character_unit}"),
        (
            cnn.max_characters_per_token != 50,
            f"`char_cnn.max_characters_per_token` is {cnn.max_characters_per_token}, not 50",
        ),
    ]
    return next((setting for is_obstacle, setting in obstacles if is_obstacle), None)


def check_export_folder(folder: Union[str, PathLike], force: bool) -> None:
    """Raises the `ConfigurationError` of `save_bilm` for the folder, before anything is written."""
    folder = expanded(folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file; expected a folder, existing or new.")
    there = [name for name in _EXPORTED if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} already holds {', '.join(there)}. Choose another folder, or replace them "
            "with `force` (--force)."
        )


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
