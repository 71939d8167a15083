from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import through_sigmoids


@dataclass(frozen=True)
class GruCell:
    """
    The gated recurrent unit of [Cho et al. (2014)](https://aclanthology.org/D14-1179) in the form
    of cuDNN and PyTorch: the reset gate closes upon what comes out of the recurrent product.

    Its blocks are that product for the candidate, the reset and the update gate, and what inputs
    put into the candidate. Memory and output are one.
    """

    projection_clip: ClassVar[Optional[float]] = None
    num_blocks: ClassVar[int] = 4
    num_state_blocks: ClassVar[int] = 3
    num_input_blocks: ClassVar[int] = 3

    def formula(
        self, gates: torch.Tensor, previous: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """See `Cell`."""
        recurrent, r, z, g = gates.chunk(4, dim=1)
        memory = torch.lerp((g + r.sigmoid() * recurrent).tanh(), previous, z.sigmoid())
        return memory, memory

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: torch.Tensor,
        previous: torch.Tensor,
        gates: Optional[torch.Tensor],
        memory: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """See `Cell`."""
        dim = memory.size(1)
        if gates is None:
            gates = memory.new_empty(len(memory), 4 * dim)
        gates[:, : 3 * dim] = recurrent
        gates[:, dim : 3 * dim].add_(inputs[:, : 2 * dim]).sigmoid_()
        h, r, z, g = gates.chunk(4, dim=1)
        torch.addcmul(inputs[:, 2 * dim :].to(memory.dtype), r, h, out=g).tanh_()
        torch.lerp(g, previous, z, out=memory)
        output.copy_(memory)

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
        h, r, z, g = gates.chunk(4, dim=1)
        d = d_output.add_(d_memory)
        results = torch.empty_like(gates)
        d_h, d_r, d_z, d_g = results.chunk(4, dim=1)
        torch.mul(d, z, out=d_memory)
        torch.sub(d, d_memory, out=d_g).mul_(1.0 - g * g)
        torch.mul(d_g, r, out=d_h)
        torch.mul(d_g, h, out=d_r)
        torch.sub(previous, g, out=d_z).mul_(d)
        through_sigmoids(results[:, g.size(1) : -g.size(1)], gates[:, g.size(1) : -g.size(1)])
        d_gates.copy_(results)
