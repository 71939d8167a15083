"""Bidirectional layers over a batch of padded sentences, with any cell."""

from typing import Sequence, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer, run_layers
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.padded import encode_padded


def initial_layer(cell: Cell, input_dim: int, hidden_dim: int) -> RecurrentLayer:
    """
    A layer with weights to begin training with, drawn for each gate separately: those of the
    inputs uniform after [Glorot and Bengio (2010)](https://proceedings.mlr.press/v9/glorot10a.html),
    the recurrent ones orthogonal after [Saxe et al. (2014)](https://arxiv.org/abs/1312.6120).
    Biases are zero, but one for forget gates, so that early gradients reach far
    ([Jozefowicz et al. 2015](https://proceedings.mlr.press/v37/jozefowicz15.html)).
    """
    layer = RecurrentLayer(cell, input_dim, hidden_dim)
    with torch.no_grad():
        for weight in layer.gates("input").values():
            torch.nn.init.xavier_uniform_(weight)
        for weight in layer.gates("recurrent").values():
            torch.nn.init.orthogonal_(weight)
        if "forget" in cell.gates:
            layer.gates("bias")["forget"].fill_(1.0)
    return layer


def encode_bidirectionally(
    layers: Sequence[Tuple[RecurrentLayer, RecurrentLayer]],
    inputs: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """
    A stack of bidirectional layers; each reads the outputs of both directions of the one before.

    # Parameters

    layers : `Sequence[Tuple[RecurrentLayer, RecurrentLayer]]`
        Forward and backward, the first layer first; of the same widths.
    inputs : `torch.Tensor`
        Shape `(batch_size, num_tokens, input_dim)`. Converted to the weights' dtype.
    mask : `torch.Tensor`
        Shape `(batch_size, num_tokens)`, real tokens first.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, num_tokens, 2 * hidden_dim)`, the forward direction first; zero at
        padding.

    # Raises

    `ConfigurationError`
        If the inputs are not as wide as the first layer's weights.
    """

    def encode(tokens: torch.Tensor, packing: Packing) -> torch.Tensor:
        for forward, backward in layers:
            tokens = _run_both_directions(forward, backward, tokens, packing)
        return tokens

    return encode_padded(encode, layers[0][0], inputs, mask)


def _run_both_directions(
    forward: RecurrentLayer, backward: RecurrentLayer, inputs: torch.Tensor, packing: Packing
) -> torch.Tensor:
    """From shape `(batch_size * num_tokens, input_dim)` to `(…, 2 * hidden_dim)`."""
    index = torch.cat([packing.forward_index, packing.backward_index])
    forward_inputs, backward_inputs = inputs.index_select(0, index).chunk(2)
    inputs_of_each = [forward_inputs, backward_inputs]
    results = run_layers([forward, backward], inputs_of_each, packing.batch_sizes)
    packed = torch.cat([outputs for outputs, _ in results])
    # A token's row is two rows of half the width: one of each direction.
    index = torch.cat([2 * packing.forward_index, 2 * packing.backward_index + 1])
    halves = packed.new_zeros(2 * len(inputs), forward.hidden_dim).index_copy_(0, index, packed)
    return halves.view(len(inputs), 2 * forward.hidden_dim)
