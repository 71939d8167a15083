"""Models as files for other runtimes: ONNX, or PyTorch's .pt2."""

from os import PathLike
from typing import Any, Dict, Sequence, Union

import torch

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.files import expanded

#: The suffixes of exported models.
SUFFIXES = (".onnx", ".pt2")


class _Plain(torch.nn.Module):
    """A model that returns a plain tuple: a file cannot name our classes."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> Any:
        outputs = self.model(*inputs)
        return outputs if isinstance(outputs, torch.Tensor) else tuple(outputs)


def export_model(
    model: torch.nn.Module,
    path: Union[str, PathLike],
    inputs: Dict[str, torch.Tensor],
    outputs: Sequence[str],
) -> None:
    """
    Writes a model that contains a `Bilm` as a graph for other runtimes: `path` ends in .onnx, for
    ONNX Runtime, or in .pt2, for `torch.export.load`. The file appears when it is complete.

    `inputs` are examples, by the names in ONNX, in the order of the model's arguments. The first
    two sizes of each, batch and length, are free in the graph. `outputs` names the results. Raises
    `ConfigurationError` for another suffix or a model in training mode, and `ImportError` without
    the packages of the extra `onnx`.
    """
    path = expanded(path)
    if path.suffix not in SUFFIXES:
        raise ConfigurationError(f"{path}: expected the suffix {' or '.join(SUFFIXES)}.")
    if model.training:
        raise ConfigurationError("Call `eval()` of a model before it is exported.")
    if path.suffix == ".onnx":
        for package in ("onnx", "onnxscript"):
            optional_package(package, "ONNX", "onnx onnxscript onnxruntime")
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    with torch.no_grad():
        program = torch.export.export(
            _Plain(model), tuple(inputs.values()), dynamic_shapes=(tuple(sizes for _ in inputs),)
        )
    with atomic_write(path) as unfinished:
        if path.suffix == ".pt2":
            with open(unfinished, "wb") as file:
                torch.export.save(program, file)
            return
        torch.onnx.export(
            program,
            f=str(unfinished),
            input_names=list(inputs),
            output_names=list(outputs),
            external_data=False,
            verbose=False,
        )
