from functools import partial
from typing import Any, Callable, List, Optional

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.seq2seq_encoders import Seq2SeqEncoder
from overrides import overrides

from elmo_plugin.layers.packed_linear import PackedLinear
from elmo_plugin.layers.packing import Packing
from elmo_plugin.layers.projected_cell import ProjectedCell
from elmo_plugin.layers.recurrence import learns, recur
from elmo_plugin.layers.recurrent_weights import Products, Weights

# Fewer sentences at once, when nothing is learned, are read by PyTorch's own loop, which costs less
# at each step and more at each sentence.
_FEW_SENTENCES = 16


@Seq2SeqEncoder.register("elmo-bilstm")
class BiLstm(Seq2SeqEncoder):
    """
    A bidirectional LSTM: in each layer one direction reads a sentence from its first token and one
    from its last, and what both say of a token, side by side, is what the next layer reads.

    AllenNLP's `lstm` with `bidirectional: true` computes the same function, and takes longer to
    train on batches of sentences on a CPU. Dropout is the caller's.

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
        self.forward_layers = torch.nn.ModuleList(_Lstm(width, hidden_size) for width in widths)
        self.backward_layers = torch.nn.ModuleList(_Lstm(width, hidden_size) for width in widths)

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
        if inputs.size(-1) != self.input_size:
            raise ConfigurationError(
                f"BiLstm reads inputs {self.input_size} wide but received {inputs.size(-1)}. "
                "Set `input_size` to the width of all that goes into it together."
            )
        assert not bool((mask[:, 1:] & ~mask[:, :-1]).any()), "padding stands before a token"
        batch_size, num_tokens = mask.shape
        packing = Packing.from_lengths(mask.sum(dim=1), num_tokens)
        # Shape: (batch_size * num_tokens, input_size)
        layer = inputs.flatten(0, 1).to(self.forward_layers[0].bias.dtype)
        for forward, backward in zip(self.forward_layers, self.backward_layers):
            layer = self._both_directions(forward, backward, layer, packing)
        return layer.unflatten(0, (batch_size, num_tokens)).to(inputs.dtype)

    def _both_directions(
        self, forward: "_Lstm", backward: "_Lstm", inputs: torch.Tensor, packing: Packing
    ) -> torch.Tensor:
        """From and to shape `(batch_size * num_tokens, dim)`."""
        if max(packing.batch_sizes, default=_FEW_SENTENCES) < _FEW_SENTENCES:
            weights = forward.standard_weights(inputs), backward.standard_weights(inputs)
            if None not in weights:
                return _read_few(weights[0] + weights[1], inputs, packing)
        places = torch.cat([packing.forward_index, packing.backward_index])
        from_front, from_end = inputs.index_select(0, places).chunk(2)
        packed = torch.cat(
            [
                forward(from_front, packing),
                backward(from_end, packing),
            ]
        )
        # A token's row is two rows of half the width: one of each direction.
        places = torch.cat([2 * packing.forward_index, 2 * packing.backward_index + 1])
        halves = packed.new_zeros(2 * len(inputs), self.hidden_size).index_copy_(0, places, packed)
        return halves.view(len(inputs), 2 * self.hidden_size)


class _Lstm(torch.nn.Module):
    """
    One direction of one layer, over packed tokens.

    Weights begin as a gate of its own would: those of the inputs uniform after
    [Glorot and Bengio (2010)](https://proceedings.mlr.press/v9/glorot10a.html), those of the state
    orthogonal after [Saxe et al. (2014)](https://arxiv.org/abs/1312.6120), block by block; biases
    at zero, but that of the forget gate at one, so that early gradients travel far
    ([Jozefowicz et al. 2015](https://proceedings.mlr.press/v37/jozefowicz15.html)).
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        num_gates = ProjectedCell.num_blocks * hidden_size
        # The gates stand in the order of `ProjectedCell`.
        self.input = PackedLinear(input_size, num_gates, bias=False)
        self.recurrent = PackedLinear(hidden_size, num_gates, bias=False)
        self.bias = torch.nn.Parameter(torch.zeros(num_gates))
        with torch.no_grad():
            for block in self.input.weight.split(hidden_size):
                torch.nn.init.xavier_uniform_(block)
            for block in self.recurrent.weight.split(hidden_size):
                torch.nn.init.orthogonal_(block)
            self.bias[hidden_size : 2 * hidden_size] = 1.0
        self._standard: Optional[List[torch.Tensor]] = None
        self._standard_version: Any = None

    def forward(self, inputs: torch.Tensor, packing: Packing) -> torch.Tensor:
        """From shape `(num_packed, input_size)` to shape `(num_packed, hidden_size)`."""
        if learns(inputs, *self.parameters()):
            weights = self.input.weight_to_learn(), self.recurrent.weight_to_learn()
            self._standard = None
        else:
            weights = self.input.weight, self.recurrent.weight
        products = Products(partial(self.input, plus=self.bias), self.recurrent, None)
        outputs, _ = recur(
            ProjectedCell(),
            inputs,
            Weights(*weights, self.bias),
            packing.batch_sizes,
            products=products,
        )
        return outputs

    def standard_weights(self, inputs: torch.Tensor) -> Optional[List[torch.Tensor]]:
        """
        The weights as `torch.lstm` takes them, if it can do for these inputs what is asked of
        `forward`: on a CPU, without a gradient, in the weights' own type. A change through
        `weight.data` is not noticed until the layer learns.
        """
        parameters = (self.input.weight, self.recurrent.weight, self.bias)
        if (
            learns(inputs, *parameters)
            or inputs.device.type != "cpu"
            or torch.is_autocast_enabled("cpu")
            # Made in inference mode, a weight changes without a trace.
            or any(parameter.is_inference() for parameter in parameters)
        ):
            return None
        version = [(parameter._version, parameter.data_ptr()) for parameter in parameters]
        if self._standard is None or self._standard_version != version:
            self._standard_version = version
            self._standard = [_standard_order(parameter.detach()) for parameter in parameters]
            self._standard.append(torch.zeros_like(self._standard[-1]))
        return self._standard

    def _apply(self, fn: Callable, recurse: bool = True) -> "_Lstm":
        # To another type and back: rounded, at the old address perhaps, with the old version.
        self._standard = None
        return super()._apply(fn, recurse)


def _standard_order(weight: torch.Tensor) -> torch.Tensor:
    """From the order of `ProjectedCell`'s gates, i, f, o, g, to PyTorch's: i, f, g, o."""
    i, f, o, g = weight.chunk(4)
    return torch.cat([i, f, g, o])


def _read_few(weights: List[torch.Tensor], inputs: torch.Tensor, packing: Packing) -> torch.Tensor:
    """Both directions of a layer, from and to shape `(batch_size * num_tokens, dim)`."""
    hidden_size, sizes = weights[1].size(1), packing.batch_sizes
    if sizes[0] == 2:
        # One after the other: products with one row are so much faster than with two.
        starts = torch.tensor([0, *sizes[:-1]]).cumsum(0)
        parts = [packing.forward_index[starts[: sum(n > k for n in sizes)] + k] for k in (0, 1)]
    else:
        parts = [packing.forward_index]
    padded = inputs.new_zeros(len(inputs), 2 * hidden_size)
    for part in parts:
        steps = torch.tensor(sizes if len(parts) == 1 else [1] * len(part))
        state = inputs.new_zeros(2, int(steps[0]), hidden_size)
        outputs, *_ = torch.lstm(
            inputs[part], steps, (state, state), weights, True, 1, 0.0, False, True
        )
        padded[part] = outputs
    return padded
