import torch
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.modules.recurrent.cells.lstm import ProjectedCell
from elmo_plugin.modules.recurrent.direction import Direction, StandardWeights, read_both_ways
from elmo_plugin.modules.recurrent.weights import Weights
from elmo_plugin.util.errors import ConfigurationError


@Seq2SeqEncoder.register("elmo-bilstm")
class BiLstm(Seq2SeqEncoder):
    """
    A bidirectional LSTM: in each layer one direction reads a sentence from its first token and one
    from its last, and what both say of a token, side by side, is what the next layer reads.

    AllenNLP's `lstm` with `bidirectional: true` computes the same function, and takes longer to
    train on batches of sentences on a CPU. Weights begin as those of `Direction`, but the biases of
    the forget gates at one, so that early gradients travel far
    ([Jozefowicz et al. 2015](https://proceedings.mlr.press/v37/jozefowicz15.html)). Dropout is the
    caller's.

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
        self.forward_layers = torch.nn.ModuleList(_lstm(width, hidden_size) for width in widths)
        self.backward_layers = torch.nn.ModuleList(_lstm(width, hidden_size) for width in widths)

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
        layers = list(zip(self.forward_layers, self.backward_layers))
        return read_both_ways(layers, inputs, mask)


def _lstm(input_size: int, hidden_size: int) -> Direction:
    direction = Direction(ProjectedCell(), input_size, hidden_size, torch.lstm, _in_standard_order)
    with torch.no_grad():
        direction.bias[hidden_size : 2 * hidden_size] = 1.0
    return direction


def _in_standard_order(weights: Weights) -> StandardWeights:
    """From the order of `ProjectedCell`'s gates, i, f, o, g, to PyTorch's: i, f, g, o."""

    def ordered(weight: torch.Tensor) -> torch.Tensor:
        i, f, o, g = weight.chunk(4)
        return torch.cat([i, f, g, o])

    bias = ordered(weights.bias)
    return ordered(weights.inputs), ordered(weights.state), bias, torch.zeros_like(bias)
