"""Compiled steps of a cell, each in one pass over memory, for bfloat16 on a CPU."""

from typing import Optional, Union

import torch

from elmo_plugin.modules.kernels.compiled import call_kernel, compiled_kernels
from elmo_plugin.modules.recurrent.cell import Cell, FormulaStep


def step_of(
    cell: Cell, device: torch.device, dtype: torch.dtype, hidden_dim: int, num_sentences: int
) -> "Step":
    """
    The cell's kernel, or its formula where it has none that was compiled for this device and type.
    """
    if (
        cell.kernel is None
        or device.type != "cpu"
        or dtype != torch.bfloat16
        or compiled_kernels() is None
    ):
        return FormulaStep(cell)
    return KernelStep(cell, cell.kernel_setting(num_sentences, hidden_dim))


class KernelStep:
    """
    The same as `FormulaStep`. All tensors must be contiguous; results and inputs of matrix products
    are bfloat16, everything else is float32.
    """

    def __init__(self, cell: Cell, setting: Union[float, torch.Tensor]) -> None:
        self._cell, self._setting = cell, setting

    def forward(self, *tensors: Optional[torch.Tensor]) -> None:
        """See `FormulaStep.forward`."""
        self._call("forward", *tensors)

    def backward(self, *tensors: torch.Tensor) -> None:
        """See `FormulaStep.backward`."""
        self._call("backward", *tensors)

    def _call(self, name: str, *tensors: Optional[torch.Tensor]) -> None:
        assert tensors[2] is not None
        num_sentences, hidden_dim = tensors[2].shape
        for tensor in tensors:
            assert tensor is None or tensor.is_contiguous(), tensor.stride()
        kernel = f"{self._cell.kernel}_{name}"
        call_kernel(kernel, num_sentences, hidden_dim, self._setting, *tensors)


Step = Union[KernelStep, FormulaStep]
