"""Keeps fitted classifiers in files, so that an interrupted command does not fit them again."""

from dataclasses import asdict
from pathlib import Path
from typing import Callable

import torch

from elmo_plugin.analysis.softmax_regression import Classifier
from elmo_plugin.util.atomic_write import atomic_write

__all__ = ["stored_classifier"]


def stored_classifier(path: Path, fit: Callable[[], Classifier]) -> Classifier:
    """The classifier in a file. If there is no such file, calls `fit` and stores the result."""
    if not path.exists():
        fields = asdict(fit())
        with atomic_write(path) as unfinished, open(unfinished, "wb") as file:
            torch.save(fields, file)
    # A new classifier is read back too, so that both cases return the same values.
    return Classifier(**torch.load(path, weights_only=True))
