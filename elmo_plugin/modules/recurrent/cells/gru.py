from dataclasses import dataclass
from typing import ClassVar, Optional, Tuple

import torch

from elmo_plugin.modules.recurrent.cell import Cell


@dataclass(frozen=True)
class GruCell(Cell):
    """
    The gated recurrent unit of [Cho et al. (2014)](https://aclanthology.org/D14-1179) in the form
    of cuDNN and PyTorch: the reset gate is applied after the recurrent product.

    The candidate needs its recurrent part (first gate) and its input part (last gate) separately.
    Cell state and hidden state are the same.
    """

    gates: ClassVar[Tuple[str, ...]] = ("recurrent candidate", "reset", "update", "candidate")
    num_recurrent_gates: ClassVar[int] = 3
    num_input_gates: ClassVar[int] = 3
    kernel: ClassVar[Optional[str]] = "gru"

    def formula(
        self, gates: torch.Tensor, cell_state: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        """See `Cell`."""
        recurrent, r, z, g = gates.chunk(4, dim=1)
        cell_state = torch.lerp((g + r.sigmoid() * recurrent).tanh(), cell_state, z.sigmoid())
        return cell_state, cell_state
