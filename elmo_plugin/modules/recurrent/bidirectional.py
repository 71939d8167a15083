"""Bidirectional layers over a batch of padded sentences, with any cell."""

from typing import Optional, Sequence, Tuple

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.recurrence import tracks_gradients
from elmo_plugin.util.errors import ConfigurationError


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
    first = layers[0][0]
    if inputs.size(-1) != first.input.in_features:
        raise ConfigurationError(
            f"The encoder reads inputs {first.input.in_features} wide but received "
            f"{inputs.size(-1)}. Set `input_size` to the width of everything that it reads."
        )
    packing = Packing.from_mask(mask)
    # Shape: (batch_size * num_tokens, input_dim)
    tokens = inputs.flatten(0, 1).to(first.bias.dtype)
    for forward, backward in layers:
        outputs = None
        if _can_use_torch_loop(forward, backward, tokens, packing):
            outputs = _run_torch_loop(forward, backward, tokens, packing)
        tokens = _run_both(forward, backward, tokens, packing) if outputs is None else outputs
    return tokens.unflatten(0, mask.shape).to(inputs.dtype)


def _run_both(
    forward: RecurrentLayer, backward: RecurrentLayer, inputs: torch.Tensor, packing: Packing
) -> torch.Tensor:
    """From shape `(batch_size * num_tokens, input_dim)` to `(…, 2 * hidden_dim)`."""
    index = torch.cat([packing.forward_index, packing.backward_index])
    forward_inputs, backward_inputs = inputs.index_select(0, index).chunk(2)
    packed = torch.cat(
        [
            forward(forward_inputs, packing.batch_sizes)[0],
            backward(backward_inputs, packing.batch_sizes)[0],
        ]
    )
    # A token's row is two rows of half the width: one of each direction.
    index = torch.cat([2 * packing.forward_index, 2 * packing.backward_index + 1])
    halves = packed.new_zeros(2 * len(inputs), forward.hidden_dim).index_copy_(0, index, packed)
    return halves.view(len(inputs), 2 * forward.hidden_dim)


def _can_use_torch_loop(
    forward: RecurrentLayer, backward: RecurrentLayer, inputs: torch.Tensor, packing: Packing
) -> bool:
    """True for few sentences on a CPU, without gradients and in the weights' own type."""
    return (
        max(packing.batch_sizes, default=tuning.FEW_SENTENCES) < tuning.FEW_SENTENCES
        and inputs.device.type == "cpu"
        and not torch.is_autocast_enabled("cpu")
        and not tracks_gradients(inputs, *forward.parameters(), *backward.parameters())
    )


def _run_torch_loop(
    forward: RecurrentLayer, backward: RecurrentLayer, inputs: torch.Tensor, packing: Packing
) -> Optional[torch.Tensor]:
    """The same as `_run_both`, by the cell's `run_torch_loop` if it has one."""
    sizes = packing.batch_sizes
    if sizes[0] == 2:
        # One sentence after the other: products with one row are faster than with two.
        starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        parts = [packing.forward_index[starts[: sum(n > k for n in sizes)] + k] for k in (0, 1)]
    else:
        parts = [packing.forward_index]
    weights = [layer.weights()[:3] for layer in (forward, backward)]
    padded = inputs.new_zeros(len(inputs), 2 * forward.hidden_dim)
    for part in parts:
        batch_sizes = torch.tensor(sizes if len(parts) == 1 else [1] * len(part))
        outputs = forward.cell.run_torch_loop(inputs[part], batch_sizes, weights)
        if outputs is None:
            return None
        padded[part] = outputs
    return padded
