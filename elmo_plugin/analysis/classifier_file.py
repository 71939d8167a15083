"""Keeps fitted classifiers in files, so that an interrupted command does not fit them again."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Callable

import numpy
import torch

from elmo_plugin.analysis.softmax_regression import Classifier
from elmo_plugin.util.atomic_write import atomic_write

__all__ = ["stored_classifier"]

_ARRAYS = ("weights", "bias")


def stored_classifier(path: Path, fit: Callable[[], Classifier]) -> Classifier:
    """The classifier in a file. If there is no such file, calls `fit` and stores the result."""
    if not path.exists():
        classifier = fit()
        fields = asdict(classifier)
        arrays = {name: fields.pop(name).numpy() for name in _ARRAYS}
        with atomic_write(path) as unfinished, open(unfinished, "wb") as file:
            numpy.savez(file, **arrays, fields=json.dumps(fields))
    # A new classifier is read back too, so that both cases return the same values.
    with numpy.load(path) as found:
        arrays = {name: torch.from_numpy(found[name]) for name in _ARRAYS}
        return Classifier(**arrays, **json.loads(str(found["fields"])))
