from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import add_recurrent, through_sigmoids, through_tanh


@dataclass(frozen=True)
class HighwayCell:
    """
    An LSTM cell with a highway connection around it: equations 1 to 8 of
    [He et al. (2017)](https://aclanthology.org/P17-1044). See `BLOCKS` for the order of its
    blocks; the last, the carry, is what goes around and takes no recurrence.

    # Parameters

    dropout_mask : `Optional[torch.Tensor]`
        Shape `(batch_size, dim)`, longest sentence first; one mask for all steps.
    """

    BLOCKS: ClassVar[Tuple[str, ...]] = (
        "candidate",
        "input_gate",
        "forget_gate",
        "output_gate",
        "highway_gate",
        "carry",
    )

    dropout_mask: Optional[torch.Tensor] = None
    projection_clip: ClassVar[Optional[float]] = None
    num_blocks: ClassVar[int] = 6
    num_state_blocks: ClassVar[int] = 5
    num_input_blocks: ClassVar[int] = 6

    def formula(
        self, gates: torch.Tensor, previous: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """See `Cell`."""
        g, i, f, o, r, carry = gates.chunk(6, dim=1)
        memory = i.sigmoid() * g.tanh() + f.sigmoid() * previous
        output = torch.lerp(carry, o.sigmoid() * memory.tanh(), r.sigmoid())
        if self.dropout_mask is not None:
            output = output * self.dropout_mask[: len(output)]
        return memory, output

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
        g, i, f, o, r, carry = gates.chunk(6, dim=1)
        g.tanh_()
        gates[:, g.size(1) : -g.size(1)].sigmoid_()
        torch.mul(f, previous, out=memory).addcmul_(i, g)
        squashed = memory.tanh().mul_(o)
        torch.lerp(carry, squashed, r, out=squashed)
        if self.dropout_mask is not None:
            squashed.mul_(self.dropout_mask[: len(squashed)])
        output.copy_(squashed)

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
        g, i, f, o, r, carry = gates.chunk(6, dim=1)
        results = d_gates if d_gates.dtype == gates.dtype else torch.empty_like(gates)
        d_g, d_i, d_f, d_o, d_r, d_carry = results.chunk(6, dim=1)
        if self.dropout_mask is not None:
            d_output.mul_(self.dropout_mask[: len(d_output)])
        squashed = torch.tanh(memory, out=d_f)
        torch.mul(o, squashed, out=d_r).sub_(carry).mul_(d_output)
        torch.addcmul(d_output, d_output, r, value=-1.0, out=d_carry)
        # From here on the gradient of `o * tanh(memory)`.
        d_output.mul_(r)
        torch.mul(d_output, squashed, out=d_o)
        d_memory.add_(d_output.mul_(o)).addcmul_(d_output.mul_(squashed), squashed, value=-1.0)
        torch.mul(d_memory, i, out=d_g)
        torch.mul(d_memory, g, out=d_i)
        torch.mul(d_memory, previous, out=d_f)
        sigmoids = slice(g.size(1), -g.size(1))
        through_sigmoids(results[:, sigmoids], gates[:, sigmoids])
        through_tanh(d_g, g)
        d_memory.mul_(f)
        if results is not d_gates:
            d_gates.copy_(results)
