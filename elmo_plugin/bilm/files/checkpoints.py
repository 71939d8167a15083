"""Folders in which bilm-tf has trained a language model, with checkpoints of TensorFlow."""

import os
import re
from pathlib import Path
from typing import Optional, Tuple

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.arrays import CHECKPOINT_SUFFIX
from elmo_plugin.bilm.files.layout import read_weights
from elmo_plugin.bilm.files.load import build
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax
from elmo_plugin.bilm.options import OPTIONS_FILE, BilmOptions, read_source
from elmo_plugin.bilm.vocabulary_file import read_vocabulary
from elmo_plugin.util.errors import ConfigurationError

# The file in which TensorFlow names the last checkpoint, often by its path on another machine.
_LAST = "checkpoint"


def read_checkpoint(
    checkpoint: Path, vocabulary_file: Optional[Path] = None
) -> Tuple[Bilm, Optional[SoftmaxWeights]]:
    """
    Reads a biLM and its softmax from the `.index` file of a checkpoint, see `find_checkpoint`.

    `vocabulary_file` is the one with which bilm-tf trained. Without it the softmax is `None`; a
    biLM with token embeddings needs it. Raises `ConfigurationError` if a file is missing or
    damaged, if they do not fit, or if TensorFlow, which reads checkpoints, is not installed.
    """
    options = _training_options(checkpoint.with_name(OPTIONS_FILE), vocabulary_file)
    bilm = build(options, lambda: read_weights(options, checkpoint))
    if vocabulary_file is None:
        return bilm, None
    return bilm, find_softmax(checkpoint, options, vocabulary_file)


def find_checkpoint(folder: Path, step: Optional[int] = None) -> Path:
    """
    The `.index` file of the last checkpoint in a folder, or of the one after `step` updates. Raises
    `ConfigurationError` if it is not there.
    """
    stems = {path.stem: path for path in folder.glob(f"*{CHECKPOINT_SUFFIX}")}
    wanted = f"model.ckpt-{step}" if step is not None else _last(folder)
    wanted = wanted or max(stems, key=_step, default="model.ckpt-N")
    if wanted not in stems:
        raise ConfigurationError(
            f"{folder}: expected the checkpoint {wanted}{CHECKPOINT_SUFFIX}, as bilm-tf writes it "
            f"in training, found {', '.join(sorted(stems, key=_step)) or 'none'}. Name the folder "
            "that holds it, or choose another checkpoint with `step` (--step)."
        )
    return stems[wanted]


def _last(folder: Path) -> Optional[str]:
    """The name of the last checkpoint, if the folder says it."""
    try:
        text = (folder / _LAST).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    found = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
    return found and os.path.basename(found[1])


def _step(stem: str) -> int:
    number = stem.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _training_options(options_file: Path, vocabulary_file: Optional[Path]) -> BilmOptions:
    """Options of a training, in which some defaults differ from those of our files."""
    source = read_source(options_file)
    if isinstance(source, dict):
        source["bidirectional"] = source.get("bidirectional") or False
        # The files that are written have two matrices, which training can change apart.
        source.pop("share_embedding_softmax", None)
        lstm, cnn = source.get("lstm"), source.get("char_cnn")
        if isinstance(lstm, dict):
            lstm["use_skip_connections"] = lstm.get("use_skip_connections") or False
        # Training has no padding, for which weight files have no row either.
        if isinstance(cnn, dict) and cnn.get("n_characters") == 261:
            cnn["n_characters"] = 262
    options = BilmOptions.from_dict(source, str(options_file))
    if options.char_cnn is not None:
        return options
    if vocabulary_file is None:
        raise ConfigurationError(
            f"{options_file} has no `char_cnn`, so the biLM has embeddings of words: expected the "
            "vocabulary of its training, found none. Name it with --vocabulary."
        )
    words = [word for word, _ in read_vocabulary(vocabulary_file)]
    return options.with_words(words, str(options_file))
