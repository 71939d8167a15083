from typing import Any, ClassVar, Optional, Type

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from allennlp.nn import InitializerApplicator
from overrides import overrides

from elmo_plugin.modules.recurrent.bidirectional import encode_bidirectionally, initial_layer
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.cells.gru import GruCell
from elmo_plugin.modules.recurrent.cells.lstm import LstmCell
from elmo_plugin.util.errors import check_least


class BidirectionalEncoder(Seq2SeqEncoder):
    """
    Bidirectional recurrent layers with any cell; each layer reads the hidden states of both
    directions of the layer before. A subclass names its cell.

    Dropout is left to the model.

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

    # Raises

    `ConfigurationError`
        If there is no layer.
    """

    cell: ClassVar[Type[Cell]]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        initializer: Optional[InitializerApplicator] = None,
    ) -> None:
        super().__init__()
        check_least(1, num_layers=num_layers)
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.forward_layers = self._layers(num_layers)
        self.backward_layers = self._layers(num_layers)
        if initializer is not None:
            initializer(self)

    def _layers(self, num_layers: int) -> torch.nn.ModuleList:
        widths = [self.input_size] + [2 * self.hidden_size] * (num_layers - 1)
        return torch.nn.ModuleList(
            initial_layer(self.cell(), width, self.hidden_size) for width in widths
        )

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
            Shape `(batch_size, num_tokens, input_size)`. Computed in the weights' dtype; under
            `torch.autocast` products are in its type, or in float32 where that is faster (by cuDNN
            on a GPU), but cell states are float32.
        mask : `torch.BoolTensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Sentences may be empty and in any
            order of length.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, num_tokens, 2 * hidden_size)`, the forward direction first; zero at
            padding; in the dtype of the inputs.

        # Raises

        `ConfigurationError`
            If the inputs are not `input_size` wide.
        """
        layers: Any = list(zip(self.forward_layers, self.backward_layers))
        return encode_bidirectionally(layers, inputs, mask)


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
