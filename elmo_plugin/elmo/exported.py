"""Models as graphs for other runtimes: ONNX, or PyTorch's .pt2."""

import logging
import warnings
from os import PathLike
from typing import Any, Dict, Sequence, Union

import torch

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.files import expanded

#: The suffixes of graphs.
SUFFIXES = (".onnx", ".pt2")
_OLDEST_TORCH = "2.13"


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
    Writes a `Bilm`, an `Elmo` or a model that contains them as a graph that needs none of our code:
    `path` ends in .onnx, for ONNX Runtime, or in .pt2, for `torch.export.load`. The file appears
    when it is complete.

    `inputs` are examples of the model's arguments, in their order, with their names in ONNX. The
    first two sizes of each, batch and length, are at least 2 here and free in the graph. `outputs`
    are names of the results. Raises `ConfigurationError` for another suffix, a model in training
    mode, a stateful biLM or an old PyTorch, and `ImportError` if a package is missing.
    """
    path = expanded(path)
    problem = ""
    if path.suffix not in SUFFIXES:
        problem = f"expected the suffix {' or '.join(SUFFIXES)}."
    elif any(part.training for part in model.modules()):
        problem = "expected a model in evaluation mode. Call its `eval()`."
    elif torch.torch_version.TorchVersion(torch.__version__) < _OLDEST_TORCH:
        problem = f"graphs need PyTorch {_OLDEST_TORCH} or later, found {torch.__version__}."
    if problem:
        raise ConfigurationError(f"{path}: {problem}")
    if path.suffix == ".onnx":
        for package in ("onnx", "onnxscript"):
            optional_package(package, "A graph for ONNX", "onnx onnxscript onnxruntime")
        # They tell of each operation that is not folded, and of torchvision if it is missing.
        for library in ("onnxscript", "torch.onnx"):
            logging.getLogger(library).setLevel(logging.ERROR)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    shapes = ((sizes,) * len(inputs),)
    # PyTorch warns of its own use of what it deprecates.
    quiet = warnings.catch_warnings(action="ignore")
    with atomic_write(path) as unfinished, torch.no_grad(), quiet:
        program = torch.export.export(_Plain(model), tuple(inputs.values()), dynamic_shapes=shapes)
        if path.suffix == ".pt2":
            with open(unfinished, "wb") as file:
                torch.export.save(program, file)
        else:
            torch.onnx.export(
                program,
                f=str(unfinished),
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_shapes=shapes,
                external_data=False,
                verbose=False,
            )
