from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import ClassVar, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import compiled_kernels
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

    def run_torch_loop(
        self,
        inputs: torch.Tensor,
        batch_sizes: torch.Tensor,
        weights: Sequence[Sequence[torch.Tensor]],
    ) -> Optional[torch.Tensor]:
        """See `Cell`. The compiled loop where there is one, else `torch.gru`."""
        flat = [part for layer in weights for part in _in_torch_order(*layer)]
        hidden_dim = weights[0][1].size(1)
        kernels = compiled_kernels()
        is_small = weights[0][1].numel() <= tuning.MAX_COMPILED_GRU_WEIGHT
        if kernels is None or inputs.dtype != torch.float32 or not is_small:
            zeros = inputs.new_zeros(2, int(batch_sizes[0]), hidden_dim)
            return torch.gru(inputs, batch_sizes, zeros, flat, True, 1, 0.0, False, True)[0]
        outputs = inputs.new_empty(len(inputs), 2 * hidden_dim)
        for is_backward, half in enumerate(outputs.split(hidden_dim, dim=1)):
            input_weight, recurrent_weight, input_bias, recurrent_bias = flat[4 * is_backward :][:4]
            # Kept in a list: the kernel only gets their addresses.
            tensors = [
                torch.addmm(input_bias, inputs, input_weight.t()),
                recurrent_weight.t().contiguous(),
                recurrent_bias,
                inputs.new_zeros(int(batch_sizes[0]), hidden_dim),
                inputs.new_empty(3 * hidden_dim),
                half,
            ]
            kernels.gru_loop(
                c_int64(len(batch_sizes)),
                c_void_p(batch_sizes.data_ptr()),
                c_int64(hidden_dim),
                c_int64(is_backward),
                *(c_void_p(tensor.data_ptr()) for tensor in tensors),
                c_int64(2 * hidden_dim),
            )
        return outputs


def _in_torch_order(
    input_weight: torch.Tensor, recurrent_weight: torch.Tensor, bias: torch.Tensor
) -> List[torch.Tensor]:
    """Both weights and biases in PyTorch's gate order: reset, update, candidate."""
    hidden_dim = recurrent_weight.size(1)
    candidate, gates = recurrent_weight.tensor_split([hidden_dim])
    candidate_bias, input_bias = bias.tensor_split([hidden_dim])
    recurrent_bias = torch.cat([bias.new_zeros(2 * hidden_dim), candidate_bias])
    return [input_weight, torch.cat([gates, candidate]), input_bias.contiguous(), recurrent_bias]
