from functools import partial
from typing import Callable, NamedTuple, Optional

import torch
from torch.nn.functional import pad

from elmo_plugin.modules.linear.packed_matrix import PackedMatrix
from elmo_plugin.modules.recurrent.cell import Cell

Product = Callable[[torch.Tensor], torch.Tensor]


class Products(NamedTuple):
    """
    The products of a recurrent layer, from rows to rows, without a gradient.

    # Parameters

    inputs, state : `Product`
        Inputs and previous outputs through their weights, with their biases.
    projection : `Optional[Product]`
        What the cell gives through its projection.
    """

    inputs: Product
    state: Product
    projection: Optional[Product]


class Weights(NamedTuple):
    """
    What a recurrent layer learns; for the blocks see `Cell`.

    # Parameters

    inputs : `torch.Tensor`
        Shape `(num_input_blocks * dim, input_dim)`.
    state : `torch.Tensor`
        Shape `(num_state_blocks * dim, output_dim)`.
    bias : `torch.Tensor`
        Shape `(num_blocks * dim,)`.
    projection : `Optional[torch.Tensor]`
        Shape `(output_dim, dim)`; without it, outputs are what the cell gives.
    """

    inputs: torch.Tensor
    state: torch.Tensor
    bias: torch.Tensor
    projection: Optional[torch.Tensor] = None

    @property
    def output_dim(self) -> int:
        """Width of the outputs."""
        return self.state.size(1)

    def dim(self, cell: Cell) -> int:
        """Width of the memory."""
        return self.bias.numel() // cell.num_blocks

    @property
    def input_bias(self) -> torch.Tensor:
        """Shape `(num_input_blocks * dim,)`. The part of the bias that comes with the inputs."""
        return self.bias[-self.inputs.size(0) :]

    @property
    def state_bias(self) -> Optional[torch.Tensor]:
        """
        Shape `(num_state_blocks * dim,)`. The part of the bias that comes with the recurrence,
        where there are blocks in which inputs have no part.
        """
        num_rest = self.bias.numel() - self.inputs.size(0)
        return pad(self.bias[:num_rest], (0, self.state.size(0) - num_rest)) if num_rest else None

    def products(self, dtype: torch.dtype) -> Products:
        """With copies of the weights, in `dtype`, that are laid out for many small products."""
        state_bias = self.state_bias
        if state_bias is not None:
            state_bias = state_bias.to(dtype)
        return Products(
            partial(PackedMatrix(self.inputs.to(dtype)).product, bias=self.input_bias.to(dtype)),
            partial(PackedMatrix(self.state.to(dtype)).product, bias=state_bias),
            None if self.projection is None else PackedMatrix(self.projection.to(dtype)).product,
        )
