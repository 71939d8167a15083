from typing import List, Optional, Sequence

import torch

from elmo_plugin.modules.packed_linear import tracks_gradients
from elmo_plugin.modules.recurrent.cells import Cell, GruCell, LstmCell, Weights
from elmo_plugin.modules.recurrent.scan import (
    Backend,
    LayerCall,
    RecurrentState,
    Result,
    Run,
    SavedActivations,
)


class Cudnn(Backend):
    """
    Runs LSTMs and GRUs by PyTorch's own functions, which call cuDNN on a GPU. Products are in TF32
    on GPUs that have it, unless `torch.backends.cudnn.allow_tf32` is false. The functions compute
    the same on a CPU, where the compiled scan is faster.
    """

    device = "cuda"
    follows_autocast = False

    def can_run(self, run: Run, dtype: torch.dtype, has_gradients: bool) -> bool:
        cell, calls, _ = run
        weights = calls[0].weights
        if type(cell) is GruCell:
            # A state has two parts here, which may differ.
            is_known = all(call.state is None for call in calls)
        else:
            is_known = type(cell) is LstmCell and not cell.clip
        return (
            is_known
            and weights.projection is None
            # Cell states in half precision drift over a long sentence.
            and weights.bias.dtype in (torch.float32, torch.float64)
            and len(calls[0].inputs) > 0
        )

    def forward(self, run: Run, saved: Optional[Sequence[SavedActivations]] = None) -> List[Result]:
        return [_recurrence(run.cell, call, run.batch_sizes) for call in run.calls]

    def differentiable(self, run: Run) -> List[Result]:
        """Autograd records `forward`."""
        return self.forward(run)


def _recurrence(cell: Cell, call: LayerCall, batch_sizes: List[int]) -> Result:
    inputs, weights, state, _ = call
    rows, parts = batch_sizes[0], _parameters(cell, weights)
    # cuDNN needs all parameters in one piece of memory.
    flat = torch.cat([part.flatten() for part in parts])
    pieces = flat.split([part.numel() for part in parts])
    parameters = [piece.view_as(part) for piece, part in zip(pieces, parts)]
    zeros = inputs.new_zeros(rows, weights.output_dim)
    hidden, cell_state = (zeros, zeros) if state is None else (part[:rows] for part in state)
    is_training = tracks_gradients(inputs, *parts, hidden, cell_state)
    settings = (parameters, True, 1, 0.0, is_training, False)
    sizes = torch.tensor(batch_sizes, device="cpu")
    if isinstance(cell, GruCell):
        outputs, last = torch.gru(inputs, sizes, hidden[None], *settings)
        return outputs, RecurrentState(last[0], last[0])
    begin = [part.to(inputs.dtype).contiguous()[None] for part in (hidden, cell_state)]
    outputs, *final = torch.lstm(inputs, sizes, begin, *settings)
    if state is None:
        return outputs, RecurrentState(*(part[0] for part in final))
    # Empty sentences keep their state.
    return outputs, RecurrentState(
        *(torch.cat([part[0], before[rows:].to(part)]) for part, before in zip(final, state))
    )


def _parameters(cell: Cell, weights: Weights) -> List[torch.Tensor]:
    """Input weights, recurrent weights and a bias for each, in PyTorch's order of gates."""
    if not isinstance(cell, GruCell):
        return [weights.input, weights.recurrent, weights.bias, torch.zeros_like(weights.bias)]
    # PyTorch's last gate is the candidate, whose recurrent part is the first gate here.
    recurrent_bias = weights.recurrent_bias
    assert recurrent_bias is not None
    dim = weights.hidden_dim(cell)
    return [
        weights.input,
        weights.recurrent.roll(-dim, dims=0),
        weights.input_bias,
        recurrent_bias.roll(-dim),
    ]
