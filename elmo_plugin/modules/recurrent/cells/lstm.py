from dataclasses import dataclass
from math import inf
from typing import ClassVar, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import Cell


@dataclass(frozen=True)
class LstmCell(Cell):
    """
    An LSTM cell without peepholes, after [Sak et al. (2014)](https://arxiv.org/abs/1402.1128):

        i, f, o = sigmoid(...),  g = tanh(...)
        c = clip(f * c + i * g),  output = o * tanh(c)

    # Parameters

    clip, projection_clip : `Optional[float]`
        Bounds on the cell state and on the projected hidden state; `None` or 0 for no bound.
    forget_bias : `float`, optional (default = `0.0`)
        Constant added to the forget gate's learned bias, as in TensorFlow's `LSTMCell`.
    """

    gates: ClassVar[Tuple[str, ...]] = ("input", "forget", "candidate", "output")
    draw_order: ClassVar[Tuple[str, ...]] = ("input", "forget", "output", "candidate")
    kernel: ClassVar[Optional[str]] = "lstm"

    clip: Optional[float] = None
    projection_clip: Optional[float] = None
    forget_bias: float = 0.0

    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """See `Cell`."""
        i, f, g, o = gates.chunk(4, dim=1)
        cell_state = f.sigmoid() * cell_state + i.sigmoid() * g.tanh()
        if self.clip:
            cell_state = cell_state.clamp(-self.clip, self.clip)
        return cell_state, o.sigmoid() * cell_state.tanh()

    def full_bias(self, bias: torch.Tensor) -> torch.Tensor:
        """See `Cell`."""
        if not self.forget_bias:
            return bias
        i, f, g, o = bias.chunk(4)
        return torch.cat([i, f + self.forget_bias, g, o])

    def kernel_setting(self, num_sentences: int, hidden_dim: int) -> float:
        """The bound on the cell state."""
        return float(self.clip or inf)
