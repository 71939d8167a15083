"""One layer of a bidirectional encoder over a batch of sentences, whatever its cell."""

from functools import partial
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.modules.linear.packed_linear import PackedLinear
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.recurrence import learns, recur
from elmo_plugin.modules.recurrent.weights import Products, Weights
from elmo_plugin.util.errors import ConfigurationError

# Fewer sentences at once, when nothing is learned, are read by PyTorch's own loop, which costs less
# at each step and more at each sentence.
_FEW_SENTENCES = 16

# Weights of inputs and state, and the biases of both, as PyTorch's own loop takes them.
StandardWeights = Tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


class Direction(torch.nn.Module):
    """
    One direction of one layer, over packed tokens.

    Weights begin as a gate of its own would: those of the inputs uniform after
    [Glorot and Bengio (2010)](https://proceedings.mlr.press/v9/glorot10a.html), those of the state
    orthogonal after [Saxe et al. (2014)](https://arxiv.org/abs/1312.6120), block by block; biases
    at zero.

    # Parameters

    cell : `Cell`
        In whose order blocks of weights stand.
    input_size, hidden_size : `int`
        Widths of the inputs and of the output.
    standard_loop : `Callable[..., Sequence[torch.Tensor]]`
        `torch.lstm`, or what takes the arguments of `torch.gru`, whichever has this cell.
    in_standard_order : `Callable[[Weights], StandardWeights]`
        From the cell's order of the blocks to that of the loop.
    """

    def __init__(
        self,
        cell: Cell,
        input_size: int,
        hidden_size: int,
        standard_loop: Callable[..., Sequence[torch.Tensor]],
        in_standard_order: Callable[[Weights], StandardWeights],
    ) -> None:
        super().__init__()
        self.cell = cell
        self.input = PackedLinear(input_size, cell.num_input_blocks * hidden_size, bias=False)
        self.recurrent = PackedLinear(hidden_size, cell.num_state_blocks * hidden_size, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(cell.num_blocks * hidden_size))
        with torch.no_grad():
            for block in self.input.weight.split(hidden_size):
                torch.nn.init.xavier_uniform_(block)
            for block in self.recurrent.weight.split(hidden_size):
                torch.nn.init.orthogonal_(block)
        self.standard_loop = standard_loop
        self._in_standard_order = in_standard_order
        self._standard: Optional[StandardWeights] = None
        self._standard_version: Any = None

    def forward(self, inputs: torch.Tensor, packing: Packing) -> torch.Tensor:
        """From shape `(num_packed, input_size)` to shape `(num_packed, hidden_size)`."""
        weights = Weights(self.input.weight, self.recurrent.weight, self.bias)
        if learns(inputs, *self.parameters()):
            self.input.weight_to_learn()
            self.recurrent.weight_to_learn()
            self._standard = None
        products = Products(
            partial(self.input, plus=weights.input_bias),
            partial(self.recurrent, plus=weights.state_bias),
            None,
        )
        outputs, _ = recur(self.cell, inputs, weights, packing.batch_sizes, products=products)
        return outputs

    def standard_weights(self, inputs: torch.Tensor) -> Optional[StandardWeights]:
        """
        The weights as PyTorch's own loop takes them, if it can do for these inputs what is asked
        of `forward`: on a CPU, without a gradient, in the weights' own type. A change through
        `weight.data` is not noticed until the layer learns.
        """
        weights = Weights(self.input.weight, self.recurrent.weight, self.bias)
        parameters = weights[:3]
        if (
            learns(inputs, *parameters)
            or inputs.device.type != "cpu"
            or torch.is_autocast_enabled("cpu")
            # Made in inference mode, a weight changes without a trace.
            or any(parameter.is_inference() for parameter in parameters)
        ):
            return None
        version = [(parameter._version, parameter.data_ptr()) for parameter in parameters]
        if self._standard is None or self._standard_version != version:
            self._standard_version = version
            with torch.no_grad():
                self._standard = self._in_standard_order(weights)
        return self._standard

    def _apply(self, fn: Callable, recurse: bool = True) -> "Direction":
        # To another type and back: rounded, at the old address perhaps, with the old version.
        self._standard = None
        return super()._apply(fn, recurse)


def read_both_ways(
    layers: Sequence[Tuple[Direction, Direction]], inputs: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """
    Layers of a bidirectional encoder, each of which reads what both directions before it say.

    # Parameters

    layers : `Sequence[Tuple[Direction, Direction]]`
        Forward and backward, the first layer first.
    inputs : `torch.Tensor`
        Shape `(batch_size, num_tokens, input_size)`. Read in the weights' own dtype.
    mask : `torch.Tensor`
        Shape `(batch_size, num_tokens)`, real tokens first.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, num_tokens, 2 * hidden_size)`, the forward direction first; zero at
        padding.

    # Raises

    `ConfigurationError`
        If the inputs are not as wide as the first layer's weights.
    """
    first = layers[0][0]
    if inputs.size(-1) != first.input.in_features:
        raise ConfigurationError(
            f"The encoder reads inputs {first.input.in_features} wide but received "
            f"{inputs.size(-1)}. Set `input_size` to the width of all that goes into it together."
        )
    assert not bool((mask[:, 1:] & ~mask[:, :-1]).any()), "padding stands before a token"
    packing = Packing.from_lengths(mask.sum(dim=1), mask.size(1))
    # Shape: (batch_size * num_tokens, input_size)
    tokens = inputs.flatten(0, 1).to(first.bias.dtype)
    for forward, backward in layers:
        tokens = _both_directions(forward, backward, tokens, packing)
    return tokens.unflatten(0, mask.shape).to(inputs.dtype)


def _both_directions(
    forward: Direction, backward: Direction, inputs: torch.Tensor, packing: Packing
) -> torch.Tensor:
    """
    What both say of each token, side by side, the forward direction first.

    # Parameters

    forward, backward : `Direction`
        Of the same widths.
    inputs : `torch.Tensor`
        Shape `(batch_size * num_tokens, input_size)`, in the weights' own dtype.
    packing : `Packing`
        Which of them are tokens.

    # Returns

    `torch.Tensor`
        Shape `(batch_size * num_tokens, 2 * hidden_size)`, zero at padding.
    """
    if max(packing.batch_sizes, default=_FEW_SENTENCES) < _FEW_SENTENCES:
        weights = forward.standard_weights(inputs), backward.standard_weights(inputs)
        if None not in weights:
            return _read_few(forward.standard_loop, [*weights[0], *weights[1]], inputs, packing)
    hidden_size = forward.recurrent.in_features
    places = torch.cat([packing.forward_index, packing.backward_index])
    from_front, from_end = inputs.index_select(0, places).chunk(2)
    packed = torch.cat([forward(from_front, packing), backward(from_end, packing)])
    # A token's row is two rows of half the width: one of each direction.
    places = torch.cat([2 * packing.forward_index, 2 * packing.backward_index + 1])
    halves = packed.new_zeros(2 * len(inputs), hidden_size).index_copy_(0, places, packed)
    return halves.view(len(inputs), 2 * hidden_size)


def _read_few(
    loop: Callable[..., Sequence[torch.Tensor]],
    weights: List[torch.Tensor],
    inputs: torch.Tensor,
    packing: Packing,
) -> torch.Tensor:
    """`_both_directions` by PyTorch's own loop."""
    hidden_size, sizes = weights[1].size(1), packing.batch_sizes
    if sizes[0] == 2:
        # One after the other: products with one row are so much faster than with two.
        starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        parts = [packing.forward_index[starts[: sum(n > k for n in sizes)] + k] for k in (0, 1)]
    else:
        parts = [packing.forward_index]
    padded = inputs.new_zeros(len(inputs), 2 * hidden_size)
    for part in parts:
        steps = torch.tensor(sizes if len(parts) == 1 else [1] * len(part))
        state = inputs.new_zeros(2, int(steps[0]), hidden_size)
        first = (state, state) if loop is torch.lstm else state
        padded[part] = loop(inputs[part], steps, first, weights, True, 1, 0.0, False, True)[0]
    return padded
