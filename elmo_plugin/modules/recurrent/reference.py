from typing import List, Optional, Sequence, Tuple

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.weights import Weights


def plain_recurrence(
    cell: Cell,
    inputs: torch.Tensor,
    weights: Weights,
    batch_sizes: Sequence[int],
    state: Optional[Tuple[torch.Tensor, torch.Tensor]] = None,
) -> Tuple[torch.Tensor, Tuple[torch.Tensor, torch.Tensor]]:
    """
    What `recur` computes, as it is read in a paper; autograd records it. See there for the
    parameters.
    """
    batch_size = max(batch_sizes, default=0)
    hidden, memory = state or (
        inputs.new_zeros(batch_size, weights.output_dim),
        inputs.new_zeros(batch_size, weights.dim(cell)),
    )
    num_gates = weights.bias.numel()
    of_inputs, of_state = weights.inputs.size(0), weights.state.size(0)
    outputs: List[torch.Tensor] = []
    ended: List[Tuple[torch.Tensor, torch.Tensor]] = []
    # Shape: (num_packed, num_blocks * dim)
    input_gates = pad(linear(inputs, weights.inputs), (num_gates - of_inputs, 0)) + weights.bias
    for gates in input_gates.split(list(batch_sizes)):
        size = len(gates)
        ended.append((hidden[size:], memory[size:]))
        hidden, memory = hidden[:size], memory[:size]
        recurrent = pad(linear(hidden, weights.state), (0, num_gates - of_state))
        memory, hidden = cell.formula(gates + recurrent, memory)
        if weights.projection is not None:
            hidden = linear(hidden, weights.projection)
            if cell.projection_clip:
                hidden = hidden.clamp(-cell.projection_clip, cell.projection_clip)
        outputs.append(hidden)
    # Shorter sentences ended first but stand last.
    hiddens, memories = zip(*reversed([*ended, (hidden, memory)]))
    return torch.cat([input_gates[:0, : weights.output_dim], *outputs]), (
        torch.cat(hiddens),
        torch.cat(memories),
    )
