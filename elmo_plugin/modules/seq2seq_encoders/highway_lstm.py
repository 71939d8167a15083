"""The encoder of He et al. (2017): a deep stack of highway LSTM layers that alternate direction."""

from typing import Any

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.modules.recurrent.cells.highway_lstm import HighwayLstmCell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.padded import encode_padded
from elmo_plugin.util.errors import check_dropout, check_least


@Seq2SeqEncoder.register("elmo-highway-lstm")
class HighwayLstm(Seq2SeqEncoder):
    """
    A deep stack of LSTM layers that alternate direction, with a highway connection around each.

    Section 2 of [He et al. (2017)](https://aclanthology.org/P17-1044), after
    [Zhang et al. (2016)](https://arxiv.org/abs/1510.08983). The first layer reads forward, the
    second backward from each sentence's own last token, and so on. With the layer's input
    `x_t`, its LSTM output `o_t * tanh(c_t)` and the dropout mask `z`, a layer computes

        h_t = z * (r_t * o_t * tanh(c_t) + (1 - r_t) * W x_t)

    where `r_t` is a gate like the others. `z` is one mask per sentence and layer, the same at
    every step, applied to what the recurrence and the next layer read. Initial weights are
    orthogonal, gate by gate, and the forget gates' biases one.

    AllenNLP's `StackedAlternatingLstm` computes the same function, except that its dropout does not
    apply to what the next layer reads, and takes about twice the time on a CPU. Memory grows with
    the number of real tokens times `9 * hidden_size * num_layers`.

    # Parameters

    input_size : `int`
        Width of the inputs.
    hidden_size : `int`
        Width of every layer's output.
    num_layers : `int`, optional (default = `8`)
        Number of layers, both directions counted.
    recurrent_dropout : `float`, optional (default = `0.1`)
        Probability with which the mask zeroes a unit in training.

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
        check_least(1, num_layers=num_layers)
        check_dropout(recurrent_dropout=recurrent_dropout)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.recurrent_dropout = recurrent_dropout
        widths = [input_size] + [hidden_size] * (num_layers - 1)
        # The default weights are replaced; the global random state stays as it was.
        with torch.random.fork_rng(devices=[]):
            self.layers: Any = torch.nn.ModuleList(
                RecurrentLayer(HighwayLstmCell(), width, hidden_size) for width in widths
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws orthogonal weights; biases are zero, but one for forget gates."""
        with torch.no_grad():
            for parameter in ("input", "recurrent"):
                for layer in self.layers:
                    for weight in layer.gates(parameter).values():
                        torch.nn.init.orthogonal_(weight)
            for layer in self.layers:
                layer.bias.zero_()
                layer.gates("bias")["forget"].fill_(1.0)

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
            Shape `(batch_size, num_tokens, input_size)`. Computed in the weights' dtype; under
            `torch.autocast` products are in its type, but cell states are float32.
        mask : `torch.BoolTensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Sentences may be empty and in any
            order of length.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, hidden_size)`, zero at padding; in the dtype
            of the inputs.

        # Raises

        `ConfigurationError`
            If the inputs are not `input_size` wide.
        """
        return encode_padded(self._encode, self.layers[0], inputs, mask)

    def _encode(self, tokens: torch.Tensor, packing: Packing) -> torch.Tensor:
        """From shape `(batch_size * num_tokens, input_size)` to `(…, hidden_size)`."""
        packed = tokens.index_select(0, packing.forward_index)
        reversal = packing.reversal()
        for layer in self.layers:
            cell = HighwayLstmCell()
            if self.training and self.recurrent_dropout > 0:
                ones = layer.bias.new_ones(len(packing.order), self.hidden_size)
                cell = HighwayLstmCell(torch.nn.functional.dropout(ones, self.recurrent_dropout))
            packed, _ = layer(packed, packing.batch_sizes, cell=cell)
            # For the next layer, which reads in the other direction.
            packed = packed.index_select(0, reversal)
        if len(self.layers) % 2:
            packed = packed.index_select(0, reversal)
        padded = packed.new_zeros(len(tokens), self.hidden_size)
        return padded.index_copy(0, packing.forward_index, packed)
