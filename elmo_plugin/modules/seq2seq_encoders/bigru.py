import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.modules.recurrent.bidirectional import (
    draw_glorot_and_orthogonal,
    encode_bidirectionally,
)
from elmo_plugin.modules.recurrent.cells.gru import GruCell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer


@Seq2SeqEncoder.register("elmo-bigru")
class BiGru(Seq2SeqEncoder):
    """
    A bidirectional layer of gated recurrent units; its output is the hidden states of both
    directions side by side.

    AllenNLP's `gru` with `bidirectional: true` computes the same function, but on a CPU the time of
    its backward pass grows with the square of the sentence length. Initial weights are those of
    `draw_glorot_and_orthogonal`, biases start at zero. Dropout is left to the model.

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
        self.forward_layer = _gru(input_size, hidden_size)
        self.backward_layer = _gru(input_size, hidden_size)

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
        return encode_bidirectionally([(self.forward_layer, self.backward_layer)], inputs, mask)


def _gru(input_size: int, hidden_size: int) -> RecurrentLayer:
    layer = RecurrentLayer(GruCell(), input_size, hidden_size)
    draw_glorot_and_orthogonal(layer)
    return layer
