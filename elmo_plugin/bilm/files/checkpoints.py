"""Folders in which bilm-tf has trained a language model, with checkpoints of TensorFlow."""

import os
import re
from contextlib import suppress
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


def find_checkpoint(path: Path) -> Path:
    """A folder's last `.index` file, or `path` if it is one. Else a `ConfigurationError`."""
    if path.suffix == CHECKPOINT_SUFFIX and path.is_file():
        return path
    found = None
    with suppress(FileNotFoundError, NotADirectoryError):
        text = (path / _LAST).read_text(encoding="utf-8", errors="replace")
        found = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
    wanted = (os.path.basename(found[1]) if found else "model.ckpt-N") + CHECKPOINT_SUFFIX
    if not (path / wanted).is_file():
        others = ", ".join(sorted(each.name for each in path.glob(f"*{CHECKPOINT_SUFFIX}")))
        raise ConfigurationError(
            f"{path}: expected the file `{_LAST}`, which names the last checkpoint of a training "
            f"by bilm-tf, and {wanted}, found {others or 'none'}. Name the folder that holds both, "
            "or the .index file of a checkpoint."
        )
    return path / wanted


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
