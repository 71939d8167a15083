"""A recurrent layer as a part of an exported graph: one `scan` over the steps."""

from typing import Any, Tuple

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules.recurrent.cells import Cell
from elmo_plugin.modules.recurrent.scan import LayerCall, RecurrentState, Result


def exported_steps(cell: Cell, call: LayerCall, batch_size: int) -> Result:
    """
    What a backend's `forward` computes for one layer, while `torch.export` records it. All steps
    have `batch_size` sentences, see `Packing`; final states are those after the last step.
    """
    # PyTorch has no public name for it yet.
    from torch._higher_order_ops.scan import scan

    inputs, weights, state, _ = call
    missing = weights.bias.numel() - weights.recurrent.size(0)
    without_input = weights.bias.numel() - weights.input.size(0)
    gates = linear(inputs, pad(weights.input, (0, 0, without_input, 0)), weights.bias)
    # Shape: (num_steps, batch_size, num_gates * hidden_dim)
    gates = gates.unflatten(0, (inputs.size(0) // batch_size, batch_size))
    # Transposed here, so that a runtime does it once, and not in each step.
    recurrent = weights.recurrent.t()
    projection = None if weights.projection is None else weights.projection.t()

    def step(state: Tuple[torch.Tensor, torch.Tensor], gates: torch.Tensor) -> Any:
        hidden, cell_state = state
        products = hidden @ recurrent
        gates = gates + (pad(products, (0, missing)) if missing else products)
        cell_state, hidden = cell.formula(gates, cell_state)
        if projection is not None:
            hidden = hidden @ projection
        if cell.projection_clip:
            hidden = hidden.clamp(-cell.projection_clip, cell.projection_clip)
        # `scan` wants no tensor twice. The states of a GRU are one.
        return (hidden, cell_state.clone()), hidden.clone()

    widths = weights.output_dim, weights.hidden_dim(cell)
    initial = state or [inputs.new_zeros(batch_size, width) for width in widths]
    final, outputs = scan(step, tuple(part.contiguous() for part in initial), gates)
    return outputs.flatten(0, 1), RecurrentState(*final)
