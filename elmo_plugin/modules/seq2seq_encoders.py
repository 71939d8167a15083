"""Recurrent encoders for AllenNLP models."""

from abc import abstractmethod
from typing import Any, ClassVar, Optional, Tuple, Type

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from allennlp.nn import InitializerApplicator
from overrides import overrides

from elmo_plugin.modules.recurrent.cells import Cell, GruCell, HighwayLstmCell, LstmCell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer, run_layers
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.util.errors import ConfigurationError, check_dropout, check_least


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

    @overrides(check_signature=False)
    def forward(self, inputs: torch.Tensor, mask: torch.BoolTensor) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(batch_size, num_tokens, input_size)`. Computed in the weights' dtype; under
            `torch.autocast` products are in its type, or in float32 where that is faster (by cuDNN
            on a GPU), but cell states are float32.
        mask : `torch.BoolTensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Sentences may be empty and in any
            order of length.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, output_dim)`, a forward direction first; zero at
            padding; in the dtype of the inputs.

        # Raises

        `ConfigurationError`
            If the inputs are not `input_size` wide.
        """
        if inputs.size(-1) != self.input_size:
            raise ConfigurationError(
                f"The encoder reads inputs {self.input_size} wide but received "
                f"{inputs.size(-1)}. Set `input_size` to the width of everything that it reads."
            )
        # Shape: (batch_size * num_tokens, input_size)
        tokens = inputs.flatten(0, 1).to(next(self.parameters()).dtype)
        encoded = self._encode(tokens, Packing.from_mask(mask))
        return encoded.unflatten(0, mask.shape).to(inputs.dtype)

    @abstractmethod
    def _encode(self, tokens: torch.Tensor, packing: Packing) -> torch.Tensor:
        """From shape `(batch_size * num_tokens, input_size)` to `(…, output_dim)`."""


class BidirectionalEncoder(RecurrentEncoder):
    """
    Bidirectional recurrent layers with any cell; each layer reads the hidden states of both
    directions of the layer before. A subclass names its cell. Dropout is left to the model.

    # Parameters

    input_size : `int`
        Width of the inputs.
    hidden_size : `int`
        Width of the output of each direction.
    num_layers : `int`, optional (default = `1`)
        Number of layers, each of both directions.
    initializer : `Optional[InitializerApplicator]`, optional (default = `None`)
        Initialises parameters. Default: see `initial_layer`. PyTorch initialises all parameters of
        its LSTMs and GRUs alike, which is `{regexes: [['.*', {type: 'uniform', a: -b, b: b}]]}`
        with `b` = 1 / √`hidden_size`.
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
        layers: Any = zip(self.forward_layers, self.backward_layers)
        for directions in layers:
            tokens = self._run_both_directions(directions, tokens, packing)
        return tokens

    def _run_both_directions(
        self,
        directions: Tuple[RecurrentLayer, RecurrentLayer],
        inputs: torch.Tensor,
        packing: Packing,
    ) -> torch.Tensor:
        index = torch.cat([packing.forward_index, packing.backward_index])
        inputs_of_each = inputs.index_select(0, index).chunk(2)
        results = run_layers(directions, inputs_of_each, packing.batch_sizes)
        packed = torch.cat([outputs for outputs, _ in results])
        # A token's row is two rows of half the width: one of each direction.
        index = torch.cat([2 * packing.forward_index, 2 * packing.backward_index + 1])
        halves = packed.new_zeros(2 * len(inputs), self.hidden_size).index_copy_(0, index, packed)
        return halves.view(len(inputs), 2 * self.hidden_size)


def initial_layer(cell: Cell, input_dim: int, hidden_dim: int) -> RecurrentLayer:
    """
    A layer with weights to begin training with, drawn for each gate separately: those of the
    inputs uniform after [Glorot and Bengio (2010)](https://proceedings.mlr.press/v9/glorot10a.html),
    the recurrent ones orthogonal after [Saxe et al. (2014)](https://arxiv.org/abs/1312.6120).
    Biases are zero, but one for forget gates, so that early gradients reach far
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
    Bidirectional LSTMs. AllenNLP's `lstm` with `bidirectional: true` computes the same function,
    and takes longer to train on batches of sentences on a CPU. See `BidirectionalEncoder`.
    """

    cell = LstmCell


@Seq2SeqEncoder.register("elmo-bigru")
class BiGru(BidirectionalEncoder):
    """
    Bidirectional gated recurrent units. AllenNLP's `gru` with `bidirectional: true` computes the
    same function, but on a CPU the time of its backward pass grows with the square of the sentence
    length. See `BidirectionalEncoder`.
    """

    cell = GruCell


@Seq2SeqEncoder.register("elmo-highway-lstm")
class HighwayLstm(RecurrentEncoder):
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

    input_size, hidden_size : `int`
        Widths of the inputs, and of every layer's output.
    num_layers : `int`, optional (default = `8`)
        Number of layers, both directions counted.
    recurrent_dropout : `float`, optional (default = `0.1`)
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
            # For the next layer, which reads in the other direction.
            packed = packed.index_select(0, reversal)
        if len(self.layers) % 2:
            packed = packed.index_select(0, reversal)
        padded = packed.new_zeros(len(tokens), self.hidden_size)
        return padded.index_copy(0, packing.forward_index, packed)
