from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import Cell


@dataclass(frozen=True)
class HighwayLstmCell(Cell):
    """
    An LSTM cell with a highway connection around it: equations 1 to 8 of
    [He et al. (2017)](https://aclanthology.org/P17-1044). `linear_input` is not a gate, but the
    linear transformation of the input that goes around the cell, without recurrence and bias.

    # Parameters

    dropout_mask : `Optional[torch.Tensor]`
        Shape `(batch_size, hidden_dim)`, longest sentence first; one mask for all steps.
    """

    gates: ClassVar[Tuple[str, ...]] = (
        "input",
        "forget",
        "candidate",
        "output",
        "transform",
        "linear_input",
    )
    draw_order: ClassVar[Tuple[str, ...]] = (
        "candidate",
        "input",
        "forget",
        "output",
        "transform",
        "linear_input",
    )
    num_recurrent_gates: ClassVar[int] = 5
    num_bias_gates: ClassVar[int] = 5
    kernel: ClassVar[Optional[str]] = "highway_lstm"

    dropout_mask: Optional[torch.Tensor] = None

    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """See `Cell`."""
        i, f, g, o, r, linear_input = gates.chunk(6, dim=1)
        cell_state = i.sigmoid() * g.tanh() + f.sigmoid() * cell_state
        output = torch.lerp(linear_input, o.sigmoid() * cell_state.tanh(), r.sigmoid())
        if self.dropout_mask is not None:
            output = output * self.dropout_mask[: len(output)]
        return cell_state, output

    def kernel_setting(self, num_sentences: int, hidden_dim: int) -> torch.Tensor:
        """The dropout mask."""
        mask = self.dropout_mask
        if mask is None:
            return torch.ones(num_sentences, hidden_dim)
        assert mask.size(0) >= num_sentences and mask.size(1) == hidden_dim, mask.shape
        return mask.to(torch.float32).contiguous()
