from ctypes import c_int64, c_void_p
from typing import Any, List, Tuple

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.modules.recurrent.cells.gru import GruCell
from elmo_plugin.modules.recurrent.direction import Direction, StandardWeights, read_both_ways
from elmo_plugin.modules.recurrent.kernels.cell_kernels import cell_kernels
from elmo_plugin.modules.recurrent.weights import Weights

# Weights of a state above which a product of PyTorch's costs less than the compiled loop's.
_LARGE = 192 * 1024


@Seq2SeqEncoder.register("elmo-bigru")
class BiGru(Seq2SeqEncoder):
    """
    A bidirectional layer of gated recurrent units: one direction reads a sentence from its first
    token and one from its last, and what comes out is what both say of a token, side by side.

    AllenNLP's `gru` with `bidirectional: true` computes the same function. On a CPU its way back
    takes a time that grows with the square of the length of the sentences. Weights begin as those
    of `Direction`; dropout is the caller's.

    # Parameters

    input_size : `int`
        Width of the inputs.
    hidden_size : `int`
        Width of the output of each direction.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.forward_direction = _gru(input_size, hidden_size)
        self.backward_direction = _gru(input_size, hidden_size)

    @overrides
    def get_input_dim(self) -> int:
        return self.input_size

    @overrides
    def get_output_dim(self) -> int:
        return 2 * self.hidden_size

    @overrides
    def is_bidirectional(self) -> bool:
        return True

    @overrides(check_signature=False)
    def forward(self, inputs: torch.Tensor, mask: torch.BoolTensor) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch_size, num_tokens, input_size)`. Read in the weights' own dtype; under
            `torch.autocast` products are in its type, memories are float32 nevertheless.
        mask : `torch.BoolTensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Sentences may be empty and in any
            order of length.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, 2 * hidden_size)`, the forward direction first; zero at
            padding.

        # Raises

        `ConfigurationError`
            If the inputs are not `input_size` wide.
        """
        return read_both_ways([(self.forward_direction, self.backward_direction)], inputs, mask)


def _gru(input_size: int, hidden_size: int) -> Direction:
    return Direction(GruCell(), input_size, hidden_size, _read_few, _in_standard_order)


def _in_standard_order(weights: Weights) -> StandardWeights:
    """From the order of `GruCell`'s blocks to PyTorch's: reset, update, candidate."""
    recurrent, gates = weights.state.tensor_split([weights.output_dim])
    of_recurrent, of_inputs = weights.bias.tensor_split([weights.output_dim])
    return (
        weights.inputs.detach(),
        torch.cat([gates, recurrent]),
        of_inputs.detach(),
        torch.cat([torch.zeros_like(gates[:, 0]), of_recurrent]),
    )


def _read_few(
    inputs: torch.Tensor,
    steps: torch.Tensor,
    state: torch.Tensor,
    weights: List[torch.Tensor],
    *settings: Any,
) -> Tuple[torch.Tensor, ...]:
    """`torch.gru` of packed sentences in both directions; the compiled loop where there is one."""
    kernels, dim = cell_kernels(), state.size(2)
    if kernels is None or inputs.dtype != torch.float32 or weights[1].numel() > _LARGE:
        return torch.gru(inputs, steps, state, weights, *settings)
    outputs = inputs.new_empty(len(inputs), 2 * dim)
    for from_end, half in enumerate(outputs.split(dim, dim=1)):
        of_inputs, of_state, input_bias, state_bias = weights[4 * from_end : 4 * from_end + 4]
        tensors = (
            torch.addmm(input_bias, inputs, of_inputs.t()),
            of_state.t().contiguous(),
            state_bias,
            torch.zeros_like(state[0]),
            inputs.new_empty(3 * dim),
            half,
        )
        sizes = c_void_p(steps.data_ptr())
        addresses = [c_void_p(tensor.data_ptr()) for tensor in tensors]
        kernels.gru_read(
            c_int64(len(steps)),
            sizes,
            c_int64(dim),
            c_int64(from_end),
            *addresses,
            c_int64(2 * dim),
        )
    return (outputs,)
