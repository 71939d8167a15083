"""The cells in one pass over memory each, for float32 on a CPU."""

import math
from ctypes import c_float, c_int64, c_void_p
from typing import Any, Optional

import torch

from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.cells.gru import GruCell
from elmo_plugin.modules.recurrent.cells.highway_lstm import HighwayCell
from elmo_plugin.modules.recurrent.cells.lstm import ProjectedCell
from elmo_plugin.modules.recurrent.kernels.cell_kernels import cell_kernels

# What comes from matrix products and goes to them; everything else is float32.
_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def fused(cell: Cell, device: torch.device, dtype: torch.dtype, dim: int, batch_size: int) -> Cell:
    """The same cell, faster if that is possible for these."""
    if device.type != "cpu" or dtype not in _NAMES or cell_kernels() is None:
        return cell
    if isinstance(cell, ProjectedCell):
        return _FusedCell(cell, dtype, "projected", c_float(cell.clip or math.inf))
    if isinstance(cell, GruCell):
        return _FusedCell(cell, dtype, "gru", c_float(0.0))
    if isinstance(cell, HighwayCell):
        mask = cell.dropout_mask
        if mask is None:
            mask = torch.ones(batch_size, dim)
        assert mask.size(0) >= batch_size and mask.size(1) == dim, mask.shape
        mask = mask.to(torch.float32).contiguous()
        return _FusedCell(cell, dtype, "highway", c_void_p(mask.data_ptr()), mask)
    return cell


class _FusedCell:
    """See `Cell`. All tensors are dense."""

    def __init__(
        self,
        cell: Cell,
        dtype: torch.dtype,
        name: str,
        setting: Any,
        mask: Optional[torch.Tensor] = None,
    ) -> None:
        self.num_blocks, self.num_state_blocks = cell.num_blocks, cell.num_state_blocks
        self.projection_clip = cell.projection_clip
        self.formula = cell.formula
        self._setting = setting
        # The kernels hold nothing but its address.
        self._mask = mask
        self._forward = getattr(cell_kernels(), f"{name}_forward_{_NAMES[dtype]}")
        self._backward = getattr(cell_kernels(), f"{name}_backward_{_NAMES[dtype]}")
        for function in (self._forward, self._backward):
            function.argtypes = [c_int64, c_int64, type(setting), *[c_void_p] * 6]

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: Optional[torch.Tensor],
        previous: torch.Tensor,
        gates: Optional[torch.Tensor],
        memory: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """See `Cell`."""
        if recurrent is None:
            recurrent = inputs.new_zeros(len(inputs), self.num_state_blocks * memory.size(1))
        self._call(self._forward, inputs, recurrent, previous, gates, memory, output)

    def backward(
        self,
        gates: torch.Tensor,
        previous: torch.Tensor,
        memory: torch.Tensor,
        d_output: torch.Tensor,
        d_memory: torch.Tensor,
        d_gates: torch.Tensor,
    ) -> None:
        """See `Cell`."""
        self._call(self._backward, gates, previous, memory, d_output, d_memory, d_gates)

    def _call(self, function: Any, *tensors: Optional[torch.Tensor]) -> None:
        rows, dim = tensors[2].shape
        addresses = []
        for tensor in tensors:
            assert tensor is None or tensor.is_contiguous(), tensor.stride()
            addresses.append(None if tensor is None else tensor.data_ptr())
        function(rows, dim, self._setting, *addresses)
