"""Writes a biLM that was trained here as the files of the published ones."""

import json
import os
import shutil
from os import PathLike
from pathlib import Path
from typing import List, Optional, Union

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.io.option_files import OPTIONS_FILE, WEIGHT_FILE, written_options
from elmo_plugin.bilm.io.softmax_files import SOFTMAX_FILE, SoftmaxWeights, save_softmax
from elmo_plugin.bilm.io.weight_files import save_weights
from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE, Entry, write_vocabulary
from elmo_plugin.util.errors import ConfigurationError

_EXPORTED = (OPTIONS_FILE, WEIGHT_FILE, SOFTMAX_FILE, VOCABULARY_FILE)


def save_bilm(
    bilm: Bilm,
    folder: Union[str, PathLike],
    softmax: Optional[SoftmaxWeights] = None,
    dtype: str = "float32",
    force: bool = False,
) -> List[Path]:
    """
    Writes `options.json` and `weights.hdf5` in the layout of the published biLMs, and with a
    softmax `softmax.hdf5` and `vocabulary.txt`; with token embeddings the latter in any case. They
    appear only when all of them are complete.

    # Parameters

    bilm : `Bilm`
        What to write.
    folder : `Union[str, PathLike]`
        Created if it does not exist.
    softmax : `Optional[SoftmaxWeights]`, optional (default = `None`)
        Output layer of the language model.
    dtype : `str`, optional (default = `"float32"`)
        `float32`, or `float16` for half the size.
    force : `bool`, optional (default = `False`)
        Replace these files, including those of a softmax; other files in the folder are kept.

    # Returns

    `List[Path]`
        The files.

    # Raises

    `ConfigurationError`
        If one of the files exists and `force` is false, or the softmax does not fit.

    `ValueError`
        If `dtype` is neither, or a weight too large for it.
    """
    folder = Path(folder)
    check_export_folder(folder, force)
    # In the folder if it exists: its parent may be on another disk.
    is_there = folder.is_dir()
    unfinished = folder / "export.unfinished" if is_there else Path(f"{folder}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        options = written_options(bilm.options)
        if softmax is not None:
            softmax.check_fit(bilm.options, "The softmax")
            save_softmax(softmax, unfinished, dtype)
            options["n_tokens_vocab"] = len(softmax.words)
        elif bilm.options.words is not None:
            entries: List[Entry] = [(word, None) for word in bilm.options.words]
            write_vocabulary(entries, unfinished / VOCABULARY_FILE)
        text = json.dumps(options, indent=4, ensure_ascii=False)
        (unfinished / OPTIONS_FILE).write_text(f"{text}\n", encoding="utf-8")
        save_weights(bilm, unfinished / WEIGHT_FILE, dtype)
        _move(unfinished, folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return [folder / name for name in _EXPORTED if (folder / name).exists()]


def allennlp_obstacle(options: BilmOptions) -> Optional[str]:
    """
    The setting for which AllenNLP's own `allennlp.modules.elmo.Elmo`, made for the published
    biLMs, cannot read such a model; `None` if it can.
    """
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
    return next((obstacle for is_one, obstacle in obstacles if is_one), None)


def check_export_folder(folder: Union[str, PathLike], force: bool) -> None:
    """
    # Raises

    `ConfigurationError`
        If `save_bilm` could not write there: it is a file, or holds such files.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file; expected a folder, new or not.")
    there = [name for name in _EXPORTED if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} already holds {', '.join(there)}. Choose another folder, or replace them "
            "with `force` (--force)."
        )


def _move(unfinished: Path, folder: Path) -> None:
    if not folder.exists():
        # All files in one step.
        os.rename(unfinished, folder)
        return
    for name in _EXPORTED:
        if (unfinished / name).exists():
            os.replace(unfinished / name, folder / name)
        else:
            # Otherwise the softmax of another biLM would stay beside this one.
            (folder / name).unlink(missing_ok=True)
