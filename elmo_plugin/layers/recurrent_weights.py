from functools import partial
from typing import Callable, NamedTuple, Optional

import torch

from elmo_plugin.layers.cells import Cell
from elmo_plugin.layers.packed_matrix import PackedMatrix

Product = Callable[[torch.Tensor], torch.Tensor]


class Products(NamedTuple):
    """
    The products of a recurrent layer, from rows to rows, without a gradient.

    # Parameters

    inputs, state : `Product`
        Inputs and previous outputs through their weights; the former adds the bias.
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
        Shape `(num_blocks * dim, input_dim)`.
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
        return self.inputs.size(0) // cell.num_blocks

    def products(self, dtype: torch.dtype) -> Products:
        """With copies of the weights, in `dtype`, that are laid out for many small products."""
        return Products(
            partial(PackedMatrix(self.inputs.to(dtype)).product, bias=self.bias.to(dtype)),
            PackedMatrix(self.state.to(dtype)).product,
            None if self.projection is None else PackedMatrix(self.projection.to(dtype)).product,
        )
