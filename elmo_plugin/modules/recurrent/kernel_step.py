"""Compiled steps of a cell, each in one pass over memory, for bfloat16 on a CPU."""

from ctypes import c_float, c_int64, c_void_p
from typing import Any, Optional, Union

import torch

from elmo_plugin.modules.kernels.compiled import compiled_kernels
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
        self._recurrent_gates = cell.num_recurrent_gates
        # Kept alive here, because the kernel only gets the address of a tensor.
        self._setting = setting
        self._argument = (
            c_void_p(setting.data_ptr()) if isinstance(setting, torch.Tensor) else c_float(setting)
        )
        self._forward = getattr(compiled_kernels(), f"{cell.kernel}_forward")
        self._backward = getattr(compiled_kernels(), f"{cell.kernel}_backward")
        for function in (self._forward, self._backward):
            function.argtypes = [c_int64, c_int64, type(self._argument), *[c_void_p] * 6]

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: Optional[torch.Tensor],
        previous: torch.Tensor,
        *results: Optional[torch.Tensor],
    ) -> None:
        """See `FormulaStep.forward`."""
        if recurrent is None:
            recurrent = inputs.new_zeros(len(inputs), self._recurrent_gates * previous.size(1))
        self._call(self._forward, inputs, recurrent, previous, *results)

    def backward(self, *tensors: torch.Tensor) -> None:
        """See `FormulaStep.backward`."""
        self._call(self._backward, *tensors)

    def _call(self, function: Any, *tensors: Optional[torch.Tensor]) -> None:
        assert tensors[2] is not None
        num_sentences, hidden_dim = tensors[2].shape
        addresses = []
        for tensor in tensors:
            assert tensor is None or tensor.is_contiguous(), tensor.stride()
            addresses.append(None if tensor is None else tensor.data_ptr())
        function(num_sentences, hidden_dim, self._argument, *addresses)


Step = Union[KernelStep, FormulaStep]
