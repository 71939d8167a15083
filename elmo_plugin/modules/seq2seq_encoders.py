from abc import abstractmethod
from typing import Any, ClassVar, Optional, Type

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from allennlp.nn import InitializerApplicator
from overrides import overrides

from elmo_plugin.modules.recurrent.cells import Cell, GruCell, HighwayLstmCell, LstmCell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer, run_layers
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.util.errors import ConfigurationError, check_dropout, check_least
from elmo_plugin.util.tensors import is_exporting, uncompiled


class RecurrentEncoder(Seq2SeqEncoder):
    """Recurrent layers over packed sentences; a subclass encodes the tokens."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        check_least(1, num_layers=num_layers)
        self.input_size = input_size
        self.hidden_size = hidden_size

    @overrides
    def get_input_dim(self) -> int:
        return self.input_size

    @overrides
    def get_output_dim(self) -> int:
        return 2 * self.hidden_size if self.is_bidirectional() else self.hidden_size

    @uncompiled
    @overrides(check_signature=False)
    def forward(self, inputs: torch.Tensor, mask: torch.BoolTensor) -> torch.Tensor:
        """
        Maps inputs `(batch_size, num_tokens, input_size)` to `(batch_size, num_tokens, output_dim)`
        in their dtype: a forward direction first, zero at padding. `mask` has real tokens first in
        each row; sentences may be empty and in any order. Raises a `ConfigurationError` if the
        inputs are not `input_size` wide.

        Computes in the weights' dtype. Under `torch.autocast` products are in its type, or in
        float32 where that is faster (cuDNN on a GPU); cell states are never in less than float32.
        """
        if inputs.size(-1) != self.input_size:
            raise ConfigurationError(
                f"The encoder reads inputs {self.input_size} wide but received "
                f"{inputs.size(-1)}. Set `input_size` to the width of everything that it reads."
            )
        # Shape: (batch_size * num_tokens, input_size)
        tokens = inputs.flatten(0, 1).to(next(self.parameters()).dtype)
        encoded = self._encode(tokens, Packing.from_mask(mask)).unflatten(0, mask.shape)
        if is_exporting():
            encoded = encoded * mask.unsqueeze(-1)
        return encoded.to(inputs.dtype)

    @abstractmethod
    def _encode(self, tokens: torch.Tensor, packing: Packing) -> torch.Tensor:
        """Maps `(batch_size * num_tokens, input_size)` to as many rows of width `output_dim`."""


class BidirectionalEncoder(RecurrentEncoder):
    """
    Bidirectional recurrent layers with any cell. Each layer reads the hidden states of both
    directions of the layer before. A subclass names its cell. The model applies dropout.

    # Parameters

    input_size, hidden_size : `int`
        Widths of the inputs and of each direction's output.
    num_layers : `int`
        Number of layers, each of both directions.
    initializer : `Optional[InitializerApplicator]`
        Initialises parameters after `initial_layer`. PyTorch's own LSTMs and GRUs start from
        `{regexes: [['.*', {type: 'uniform', a: -b, b: b}]]}` with `b` = 1 / √`hidden_size`.
    """

    cell: ClassVar[Type[Cell]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        initializer: Optional[InitializerApplicator] = None,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers)
        widths = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.forward_layers, self.backward_layers = (
            torch.nn.ModuleList(initial_layer(self.cell(), width, hidden_size) for width in widths)
            for _ in range(2)
        )
        if initializer is not None:
            initializer(self)

    @overrides
    def is_bidirectional(self) -> bool:
        return True

    def _encode(self, tokens: torch.Tensor, packing: Packing) -> torch.Tensor:
        read = torch.cat([packing.forward_index, packing.backward_index])
        # A token's row is two rows of half the width: one of each direction.
        written = torch.cat([2 * packing.forward_index, 2 * packing.backward_index + 1])
        layers: Any = zip(self.forward_layers, self.backward_layers)
        for directions in layers:
            inputs = tokens.index_select(0, read).unflatten(0, (2, read.size(0) // 2)).unbind()
            results = run_layers(directions, inputs, packing.batch_sizes)
            packed = torch.cat([outputs for outputs, _ in results])
            halves = packed.new_zeros(2 * tokens.size(0), self.hidden_size)
            halves = halves.index_copy_(0, written, packed)
            tokens = halves.view(-1, 2 * self.hidden_size)
        return tokens


def initial_layer(cell: Cell, input_dim: int, hidden_dim: int) -> RecurrentLayer:
    """
    A layer with initial weights, drawn for each gate separately. Input weights are uniform
    ([Glorot and Bengio 2010](https://proceedings.mlr.press/v9/glorot10a.html)), recurrent weights
    orthogonal ([Saxe et al. 2014](https://arxiv.org/abs/1312.6120)). Biases are zero, but one for
    forget gates, so that early gradients reach far
    ([Jozefowicz et al. 2015](https://proceedings.mlr.press/v37/jozefowicz15.html)).
    """
    layer = RecurrentLayer(cell, input_dim, hidden_dim)
    with torch.no_grad():
        for weight in layer.gates("input").values():
            torch.nn.init.xavier_uniform_(weight)
        for weight in layer.gates("recurrent").values():
            torch.nn.init.orthogonal_(weight)
        if "forget" in cell.gates:
            layer.gates("bias")["forget"].fill_(1.0)
    return layer


@Seq2SeqEncoder.register("elmo-bilstm")
class BiLstm(BidirectionalEncoder):
    """
    Bidirectional LSTMs, see `BidirectionalEncoder`. AllenNLP's `lstm` with `bidirectional: true`
    computes the same function, but takes longer to train on batches of sentences on a CPU.
    """

    cell = LstmCell


@Seq2SeqEncoder.register("elmo-bigru")
class BiGru(BidirectionalEncoder):
    """
    Bidirectional GRUs, see `BidirectionalEncoder`. AllenNLP's `gru` with `bidirectional: true`
    computes the same, but on a CPU its backward pass takes time quadratic in the sentence length.
    """

    cell = GruCell


@Seq2SeqEncoder.register("elmo-highway-lstm")
class HighwayLstm(RecurrentEncoder):
    """
    LSTM layers of alternating direction, each with a highway connection: section 2 of
    [He et al. (2017)](https://aclanthology.org/P17-1044), after
    [Zhang et al. (2016)](https://arxiv.org/abs/1510.08983).

    The first layer reads forward, the second backward from each sentence's last token, and so on. A
    layer with input `x_t` and LSTM output `o_t * tanh(c_t)` computes

        h_t = z * (r_t * o_t * tanh(c_t) + (1 - r_t) * W x_t)

    where `r_t` is a gate like the others. The dropout mask `z` is the same at every step of a
    sentence; it applies to what the recurrence and the next layer read. Initial weights are
    orthogonal, gate by gate. Biases start at zero, but at one for forget gates.

    AllenNLP's `StackedAlternatingLstm` computes the same, but its dropout spares what the next
    layer reads, and it takes about twice the time on a CPU. Memory grows with the number of real
    tokens times `9 * hidden_size * num_layers`.

    # Parameters

    input_size, hidden_size : `int`
        Widths of the inputs, and of every layer's output.
    num_layers : `int`
        Number of layers, both directions counted.
    recurrent_dropout : `float`
        Probability with which the mask zeroes a unit in training.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 8,
        recurrent_dropout: float = 0.1,
    ) -> None:
        super().__init__(input_size, hidden_size, num_layers)
        check_dropout(recurrent_dropout=recurrent_dropout)
        self.recurrent_dropout = recurrent_dropout
        widths = [input_size] + [hidden_size] * (num_layers - 1)
        # Keeps the global random state: the default weights are replaced below.
        with torch.random.fork_rng(devices=[]):
            layers = [RecurrentLayer(HighwayLstmCell(), width, hidden_size) for width in widths]
        with torch.no_grad():
            for parameter in ("input", "recurrent"):
                for layer in layers:
                    for weight in layer.gates(parameter).values():
                        torch.nn.init.orthogonal_(weight)
            for layer in layers:
                layer.gates("bias")["forget"].fill_(1.0)
        self.layers: Any = torch.nn.ModuleList(layers)

    @overrides
    def is_bidirectional(self) -> bool:
        return False

    def _encode(self, tokens: torch.Tensor, packing: Packing) -> torch.Tensor:
        packed = tokens.index_select(0, packing.forward_index)
        reversal = packing.reversal()
        for layer in self.layers:
            cell = HighwayLstmCell()
            if self.training and self.recurrent_dropout > 0:
                ones = layer.bias.new_ones(len(packing.order), self.hidden_size)
                cell = HighwayLstmCell(torch.nn.functional.dropout(ones, self.recurrent_dropout))
            packed, _ = layer(packed, packing.batch_sizes, cell=cell)
            # The next layer reads in the other direction.
            packed = packed.index_select(0, reversal)
        if len(self.layers) % 2:
            packed = packed.index_select(0, reversal)
        padded = packed.new_zeros(tokens.size(0), self.hidden_size)
        return padded.index_copy(0, packing.forward_index, packed)
