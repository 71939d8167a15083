from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import (
    add_recurrent,
    stop_at_clip,
    through_sigmoids,
    through_tanh,
)


@dataclass(frozen=True)
class ProjectedCell:
    """
    The LSTM cell of a biLM, its memory clipped: [Sak et al. (2014)](https://arxiv.org/abs/1402.1128)
    without peepholes. Its blocks are the input, forget and output gates and the candidate.

    # Parameters

    clip, projection_clip : `Optional[float]`
        Bounds on the memory and on the projected output; `None` for no bound.
    """

    clip: Optional[float] = None
    projection_clip: Optional[float] = None
    num_blocks: ClassVar[int] = 4
    num_state_blocks: ClassVar[int] = 4
    num_input_blocks: ClassVar[int] = 4

    def formula(
        self, gates: torch.Tensor, previous: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """See `Cell`."""
        i, f, o, g = gates.chunk(4, dim=1)
        memory = f.sigmoid() * previous + i.sigmoid() * g.tanh()
        if self.clip:
            memory = memory.clamp(-self.clip, self.clip)
        return memory, o.sigmoid() * memory.tanh()

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: Optional[torch.Tensor],
        previous: torch.Tensor,
        gates: Optional[torch.Tensor],
        memory: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """See `Cell`."""
        gates = add_recurrent(inputs, recurrent, gates, memory.dtype)
        i, f, o, g = gates.chunk(4, dim=1)
        gates[:, : -g.size(1)].sigmoid_()
        g.tanh_()
        torch.mul(f, previous, out=memory).addcmul_(i, g)
        if self.clip:
            memory.clamp_(-self.clip, self.clip)
        output.copy_(memory.tanh().mul_(o))

    def backward(
        self,
        gates: torch.Tensor,
        previous: torch.Tensor,
        memory: torch.Tensor,
        d_output: torch.Tensor,
        d_memory: torch.Tensor,
        d_gates: torch.Tensor,
    ) -> None:
        """See `Cell`."""
        i, f, o, g = gates.chunk(4, dim=1)
        results = d_gates if d_gates.dtype == gates.dtype else torch.empty_like(gates)
        d_i, d_f, d_o, d_g = results.chunk(4, dim=1)
        squashed = torch.tanh(memory, out=d_f)
        torch.mul(d_output, squashed, out=d_o)
        d_memory.add_(d_output.mul_(o)).addcmul_(d_output.mul_(squashed), squashed, value=-1.0)
        stop_at_clip(d_memory, memory, self.clip)
        torch.mul(d_memory, g, out=d_i)
        torch.mul(d_memory, previous, out=d_f)
        torch.mul(d_memory, i, out=d_g)
        through_sigmoids(results[:, : -g.size(1)], gates[:, : -g.size(1)])
        through_tanh(d_g, g)
        d_memory.mul_(f)
        if results is not d_gates:
            d_gates.copy_(results)
