from functools import partial
from typing import NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_plugin.bilm.options import LstmOptions
from elmo_plugin.modules.linear.packed_linear import PackedLinear
from elmo_plugin.modules.recurrent.cells.lstm import ProjectedCell
from elmo_plugin.modules.recurrent.recurrence import learns, recur
from elmo_plugin.modules.recurrent.weights import Products, Weights


class LstmState(NamedTuple):
    """
    What one direction of one layer remembers.

    # Parameters

    hidden : `torch.Tensor`
        Shape `(batch_size, output_dim)`.
    cell : `torch.Tensor`
        Shape `(batch_size, dim)`.
    """

    hidden: torch.Tensor
    cell: torch.Tensor


class ProjectedLstm(torch.nn.Module):
    """
    One direction of one layer of a biLM: an LSTM whose cell is clipped and whose output is
    projected and clipped.

    [Sak et al. (2014)](https://arxiv.org/abs/1402.1128) without peepholes; TensorFlow's
    `LSTMCell` as bilm-tf uses it, whose hidden 1 on the forget bias is added here too.

        i, f, o = sigmoid(W x + U h + b),  g = tanh(W x + U h + b)
        c = clip(f * c + i * g),  h = clip(P (o * tanh(c)))

    Without a projection, `h = o * tanh(c)`.

    # Parameters

    input_dim : `int`
        Width of the input.
    options : `LstmOptions`
        Numbers of cells and outputs, and the clips.
    """

    def __init__(self, input_dim: int, options: LstmOptions) -> None:
        super().__init__()
        self.options = options
        num_gates = 4 * options.dim
        # The gates stand in the order i, f, o, g: one sigmoid for the first three.
        self.input = PackedLinear(input_dim, num_gates, bias=False)
        self.recurrent = PackedLinear(options.output_dim, num_gates, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(num_gates))
        self.projection: Optional[PackedLinear] = None
        if options.projection_dim is not None:
            self.projection = PackedLinear(options.dim, options.projection_dim, bias=False)
        # The hidden 1 stays out of `bias`, so that a weight file is written back bit for bit.
        forget_bias = torch.zeros(num_gates)
        forget_bias[options.dim : 2 * options.dim] = 1.0
        self.register_buffer("forget_bias", forget_bias, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as TensorFlow's default does: uniform, after Glorot and Bengio."""
        fan = self.input.in_features + self.recurrent.in_features + self.bias.numel()
        bound = (6.0 / fan) ** 0.5
        torch.nn.init.uniform_(self.input.weight, -bound, bound)
        torch.nn.init.uniform_(self.recurrent.weight, -bound, bound)
        if self.projection is not None:
            torch.nn.init.xavier_uniform_(self.projection.weight)
        torch.nn.init.zeros_(self.bias)

    def forward(
        self, inputs: torch.Tensor, batch_sizes: Sequence[int], state: Optional[LstmState] = None
    ) -> Tuple[torch.Tensor, LstmState]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_packed, input_dim)`. Tokens in the order of a `Packing`.
        batch_sizes : `Sequence[int]`
            Number of sentences at each step, never growing.
        state : `Optional[LstmState]`
            State before the first step, sentences in packed order; zeros when not given.

        # Returns

        outputs : `torch.Tensor`
            Shape `(num_packed, output_dim)`.
        state : `LstmState`
            State after each sentence's last token.
        """
        bias = self.bias + self.forget_bias
        layers = (self.input, self.recurrent, self.projection)
        if learns(inputs, *(state or ()), *self.parameters()):
            weights = [layer and layer.weight_to_learn() for layer in layers]
        else:
            weights = [layer and layer.weight for layer in layers]
        outputs, final = recur(
            ProjectedCell(self.options.cell_clip, self.options.proj_clip),
            inputs,
            Weights(*weights[:2], bias, weights[2]),
            batch_sizes,
            state,
            Products(partial(self.input, plus=bias), self.recurrent, self.projection),
        )
        return outputs, LstmState(*final)
