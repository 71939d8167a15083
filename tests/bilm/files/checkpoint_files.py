"""Checkpoints of bilm-tf's training, and a reader for them where TensorFlow is not installed."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict

import numpy

from tests.guide import FIXTURES

#: A checkpoint that TensorFlow wrote, and the same arrays in `variables.npz`.
RECORDED = FIXTURES / "checkpoint"
Variables = Dict[str, numpy.ndarray]


def recorded() -> Variables:
    with numpy.load(RECORDED / "variables.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


class Reader:
    """The part of TensorFlow's reader of checkpoints that is used, for arrays."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def get_variable_to_shape_map(self):
        return {name: list(array.shape) for name, array in self._variables.items()}

    def get_variable_to_dtype_map(self):
        # NumPy's types have a `name`, too.
        return {name: array.dtype for name, array in self._variables.items()}

    def get_tensor(self, name):
        return self._variables[name]


def without_tensorflow(monkeypatch, checkpoints: Dict[str, Variables]) -> None:
    """Checkpoints, by the path that they have without a suffix, are read from these arrays."""
    train = SimpleNamespace(load_checkpoint=lambda path: Reader(checkpoints[path]))
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(train=train))


def write_folder(folder: Path, options: Dict[str, Any], *steps: int) -> Path:
    """The folder of a training, whose checkpoints are empty."""
    folder.mkdir(exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options))
    for step in steps:
        (folder / f"model.ckpt-{step}.index").touch()
    return folder
