from functools import partial
from typing import Callable, Dict, NamedTuple, Optional, Tuple, Union

import torch
from torch.nn.functional import pad

from elmo_plugin.modules.linear.int8 import Int8Linear
from elmo_plugin.modules.linear.packed import PackedLinear, PackedMatrix
from elmo_plugin.modules.linear.panels import panels
from elmo_plugin.modules.recurrent.cell import Cell

Product = Callable[[torch.Tensor], torch.Tensor]
Linear = Union[PackedLinear, Int8Linear]
# The layers that own the input, the recurrent and the projection weights.
LinearLayers = Tuple[Linear, Linear, Optional[Linear]]


class Products(NamedTuple):
    """The matrix products of a recurrent layer, without gradients."""

    #: Products with the inputs and with the previous hidden states, plus their parts of the bias.
    input: Product
    recurrent: Product
    #: Product with the cell's outputs.
    projection: Optional[Product]


class Weights(NamedTuple):
    """The weights of a recurrent layer; for the order of the gates see `Cell`."""

    #: Shape `(num_input_gates * hidden_dim, input_dim)`.
    input: torch.Tensor
    #: Shape `(num_recurrent_gates * hidden_dim, output_dim)`.
    recurrent: torch.Tensor
    #: Shape `(num_gates * hidden_dim,)`.
    bias: torch.Tensor
    #: Shape `(output_dim, hidden_dim)`; without it, the cell's output is the hidden state.
    projection: Optional[torch.Tensor] = None

    @property
    def output_dim(self) -> int:
        """Width of the hidden state."""
        return self.recurrent.size(1)

    def hidden_dim(self, cell: Cell) -> int:
        """Width of the cell state."""
        return self.bias.numel() // len(cell.gates)

    @property
    def input_bias(self) -> torch.Tensor:
        """Shape `(num_input_gates * hidden_dim,)`. The bias of the gates that have inputs."""
        return self.bias[-self.input.size(0) :]

    @property
    def recurrent_bias(self) -> Optional[torch.Tensor]:
        """
        Shape `(num_recurrent_gates * hidden_dim,)`. The bias of the gates without inputs, padded
        with zeros; `None` if every gate has inputs.
        """
        num_rest = self.bias.numel() - self.input.size(0)
        padding = (0, self.recurrent.size(0) - num_rest)
        return pad(self.bias[:num_rest], padding) if num_rest else None

    def panels(
        self, cell: Cell, layers: Optional[LinearLayers] = None
    ) -> Dict[str, Optional[torch.Tensor]]:
        """
        Copies of the weights for a compiled scan, see `panels`: input, recurrent, projection. The
        `layers` that own the weights cache them, if they are given.
        """
        input, recurrent, projection = layers or (None, None, None)
        return {
            "input": _panels(self.input, input, cell.num_input_gates),
            "recurrent": _panels(self.recurrent, recurrent, cell.num_recurrent_gates),
            "projection": (
                None if self.projection is None else _panels(self.projection, projection)
            ),
        }

    def products(self, dtype: torch.dtype, layers: Optional[LinearLayers] = None) -> Products:
        """
        Products with packed copies of the weights in `dtype`, see `PackedMatrix`; those of `layers`
        are cached, see `panels`, if `dtype` is the type of the weights.
        """
        if layers is not None and dtype == self.bias.dtype:
            input, recurrent, projection = layers
            return Products(
                partial(input, bias=self.input_bias),
                partial(recurrent, bias=self.recurrent_bias),
                projection,
            )
        recurrent_bias = self.recurrent_bias
        if recurrent_bias is not None:
            recurrent_bias = recurrent_bias.to(dtype)
        return Products(
            partial(PackedMatrix(self.input.to(dtype)).product, bias=self.input_bias.to(dtype)),
            partial(PackedMatrix(self.recurrent.to(dtype)).product, bias=recurrent_bias),
            None if self.projection is None else PackedMatrix(self.projection.to(dtype)).product,
        )


def _panels(weight: torch.Tensor, layer: Optional[Linear], *num_gates: int) -> torch.Tensor:
    if isinstance(layer, PackedLinear):
        return layer.cached(panels, *num_gates)
    # Not `layer.weight`, which for an `Int8Linear` may be on the device `meta` by now.
    return panels(weight, *num_gates)
