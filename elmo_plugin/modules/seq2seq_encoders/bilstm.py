from typing import Any

import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.modules.recurrent.bidirectional import encode_bidirectionally, lstm_layer
from elmo_plugin.util.errors import ConfigurationError


@Seq2SeqEncoder.register("elmo-bilstm")
class BiLstm(Seq2SeqEncoder):
    """
    A bidirectional LSTM: each layer reads the hidden states of both directions of the layer before.

    AllenNLP's `lstm` with `bidirectional: true` computes the same function, and takes longer to
    train on batches of sentences on a CPU. Initial weights are those of `lstm_layer`. Dropout is
    left to the model.

    # Parameters

    input_size : `int`
        Width of the inputs.
    hidden_size : `int`
        Width of the output of each direction.
    num_layers : `int`, optional (default = `1`)
        Number of layers, each of both directions.

    # Raises

    `ConfigurationError`
        If there is no layer.
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1) -> None:
        super().__init__()
        if num_layers < 1:
            raise ConfigurationError(f"BiLstm needs `num_layers` >= 1, not {num_layers}.")
        self.input_size = input_size
        self.hidden_size = hidden_size
        widths = [input_size] + [2 * hidden_size] * (num_layers - 1)
        self.forward_layers = torch.nn.ModuleList(lstm_layer(dim, hidden_size) for dim in widths)
        self.backward_layers = torch.nn.ModuleList(lstm_layer(dim, hidden_size) for dim in widths)

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
            Shape `(batch_size, num_tokens, input_size)`. Converted to the weights' dtype; under
            `torch.autocast` products are in its type, but cell states are float32.
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
        layers: Any = list(zip(self.forward_layers, self.backward_layers))
        return encode_bidirectionally(layers, inputs, mask)
