from typing import List, Optional, Sequence, Tuple

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.scan import RecurrentState
from elmo_plugin.modules.recurrent.weights import Weights


def reference_recurrence(
    cell: Cell,
    inputs: torch.Tensor,
    weights: Weights,
    batch_sizes: Sequence[int],
    state: Optional[RecurrentState] = None,
) -> Tuple[torch.Tensor, RecurrentState]:
    """
    The same as `recurrences` of one layer, in plain PyTorch operations, differentiated by autograd.
    See `LayerCall` for the parameters.
    """
    batch_size = max(batch_sizes, default=0)
    hidden, cell_state = state or (
        inputs.new_zeros(batch_size, weights.output_dim),
        inputs.new_zeros(batch_size, weights.hidden_dim(cell)),
    )
    num_gates = weights.bias.numel()
    without_input = num_gates - weights.input.size(0)
    without_recurrent = num_gates - weights.recurrent.size(0)
    outputs: List[torch.Tensor] = []
    ended: List[Tuple[torch.Tensor, torch.Tensor]] = []
    # Shape: (num_packed, num_gates * hidden_dim)
    input_gates = pad(linear(inputs, weights.input), (without_input, 0)) + weights.bias
    for gates in input_gates.split(list(batch_sizes)):
        size = len(gates)
        ended.append((hidden[size:], cell_state[size:]))
        hidden, cell_state = hidden[:size], cell_state[:size]
        recurrent = pad(linear(hidden, weights.recurrent), (0, without_recurrent))
        cell_state, hidden = cell.formula(gates + recurrent, cell_state)
        if weights.projection is not None:
            hidden = linear(hidden, weights.projection)
            if cell.projection_clip:
                hidden = hidden.clamp(-cell.projection_clip, cell.projection_clip)
        outputs.append(hidden)
    # Shorter sentences ended first but come last.
    hidden_states, cell_states = zip(*reversed([*ended, (hidden, cell_state)]))
    return torch.cat([input_gates.new_empty(0, weights.output_dim), *outputs]), RecurrentState(
        torch.cat(hidden_states), torch.cat(cell_states)
    )
