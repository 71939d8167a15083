"""The encoder of He et al. (2017): a deep stack of highway LSTM layers that alternate direction."""

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.modules.recurrent.alternating_packing import AlternatingPacking
from elmo_plugin.modules.recurrent.cells.highway_lstm import HighwayCell
from elmo_plugin.modules.recurrent.recurrence import recur
from elmo_plugin.modules.recurrent.weights import Weights
from elmo_plugin.util.errors import ConfigurationError


@Seq2SeqEncoder.register("elmo-highway-lstm")
class HighwayLstm(Seq2SeqEncoder):
    """
    A deep stack of LSTM layers that alternate direction, with a highway connection around each.

    Section 2 of [He et al. (2017)](https://aclanthology.org/P17-1044), after
    [Zhang et al. (2016)](https://arxiv.org/abs/1510.08983). The first layer reads forward, the
    second backward from each sentence's own last token, and so on. With the layer's input
    `x_t`, its LSTM output `o_t * tanh(c_t)` and the dropout mask `z`, a layer gives

        h_t = z * (r_t * o_t * tanh(c_t) + (1 - r_t) * W x_t)

    where `r_t` is a gate like the others. `z` is one mask per sentence and layer, the same at
    every step, on what the recurrence and the next layer read. Weights are initialised
    orthogonally, block by block, and the forget gates' biases at one.

    AllenNLP's `StackedAlternatingLstm` computes the same function, except that its dropout leaves
    alone what the next layer reads, and takes about twice the time on a CPU. Memory grows with
    the number of real tokens times `9 * hidden_size * num_layers`, padding costs nothing.

    # Parameters

    input_size : `int`
        Width of the inputs.
    hidden_size : `int`
        Width of every layer's output.
    num_layers : `int`, optional (default = `8`)
        Number of layers, both directions counted.
    recurrent_dropout : `float`, optional (default = `0.1`)
        Probability with which the mask silences a unit in training.

    # Raises

    `ConfigurationError`
        If there is no layer, or the dropout is not a probability below one.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 8,
        recurrent_dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if num_layers < 1:
            raise ConfigurationError(f"HighwayLstm needs `num_layers` >= 1, not {num_layers}.")
        if not 0 <= recurrent_dropout < 1:
            raise ConfigurationError(
                f"HighwayLstm needs 0 <= `recurrent_dropout` < 1, not {recurrent_dropout}."
            )
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.recurrent_dropout = recurrent_dropout
        widths = [input_size] + [hidden_size] * (num_layers - 1)
        num_gates = HighwayCell.num_state_blocks * hidden_size
        self.input_weights = torch.nn.ParameterList(
            torch.empty(HighwayCell.num_blocks * hidden_size, width) for width in widths
        )
        self.state_weights = torch.nn.ParameterList(
            torch.empty(num_gates, hidden_size) for _ in widths
        )
        self.biases = torch.nn.ParameterList(torch.empty(num_gates) for _ in widths)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Orthogonal blocks; a forget gate that begins open lets early gradients travel far."""
        with torch.no_grad():
            for weight in (*self.input_weights, *self.state_weights):
                for block in weight.split(self.hidden_size):
                    torch.nn.init.orthogonal_(block)
            for bias in self.biases:
                bias.zero_()
                bias.split(self.hidden_size)[HighwayCell.BLOCKS.index("forget_gate")].fill_(1)

    @overrides
    def get_input_dim(self) -> int:
        return self.input_size

    @overrides
    def get_output_dim(self) -> int:
        return self.hidden_size

    @overrides
    def is_bidirectional(self) -> bool:
        return False

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
            Shape `(batch_size, num_tokens, hidden_size)`, zero at padding.

        # Raises

        `ConfigurationError`
            If the inputs are not `input_size` wide.
        """
        if inputs.size(-1) != self.input_size:
            raise ConfigurationError(
                f"HighwayLstm reads inputs {self.input_size} wide but received {inputs.size(-1)}. "
                "Set `input_size` to the width of the embedded words and features together."
            )
        batch_size, num_tokens = mask.shape
        packing = AlternatingPacking.of(mask)
        inputs = inputs.reshape(-1, self.input_size).to(self.biases[0].dtype)
        packed = self._encode(inputs.index_select(0, packing.positions), packing, batch_size)
        padded = packed.new_zeros(batch_size * num_tokens, self.hidden_size)
        padded = padded.index_copy(0, packing.positions, packed)
        return padded.view(batch_size, num_tokens, self.hidden_size).to(inputs.dtype)

    def _encode(
        self, packed: torch.Tensor, packing: AlternatingPacking, batch_size: int
    ) -> torch.Tensor:
        backward = False
        for inputs, state, bias in zip(self.input_weights, self.state_weights, self.biases):
            dropout_mask = None
            if self.training and self.recurrent_dropout > 0:
                dropout_mask = torch.nn.functional.dropout(
                    bias.new_ones(batch_size, self.hidden_size), self.recurrent_dropout
                )
            # The carry has no bias.
            weights = Weights(inputs, state, torch.nn.functional.pad(bias, (0, self.hidden_size)))
            packed, _ = recur(HighwayCell(dropout_mask), packed, weights, packing.batch_sizes)
            packed = packed.index_select(0, packing.reversal)
            backward = not backward
        return packed.index_select(0, packing.reversal) if backward else packed
