from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.bilm.options import BilmOptions, LstmOptions
from elmo_plugin.modules.recurrent.cells import LstmCell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer, run_layers
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.recurrent.scan import RecurrentState

# For each layer the states of its directions: (forward, backward), or only (forward,).
BilstmState = List[Tuple[RecurrentState, ...]]


class BidirectionalLstm(torch.nn.Module):
    """
    The recurrent layers of a biLM (section 3.1), one stack for each direction.

    Like bilm-tf's `LSTMCell`, they clip the cell state and the projection, and add 1 to the bias of
    the forget gate outside of the parameter. So weight files are written back bit for bit.
    """

    def __init__(self, options: BilmOptions) -> None:
        super().__init__()
        self.options = options.lstm
        self.forward_layers = _stack(options)
        self.backward_layers = _stack(options) if options.bidirectional else torch.nn.ModuleList()

    @property
    def stacks(self) -> List[torch.nn.ModuleList]:
        """The layers of each direction, forward first."""
        stacks = [self.forward_layers, self.backward_layers]
        return stacks if self.backward_layers else stacks[:1]

    def forward(
        self, tokens: torch.Tensor, packing: Packing, state: Optional[BilstmState] = None
    ) -> Tuple[torch.Tensor, BilstmState]:
        """
        Runs all layers, and returns them and their final states.

        `tokens` is the token layer, shape `(batch_size, num_tokens, token_dim)`. The layers have
        shape `(n_layers, batch_size, num_tokens, num_directions * output_dim)` and are 0 at
        padding. States are in the order of the batch; initial states are zeros by default.
        """
        batch_size, num_tokens, _ = tokens.size()
        tokens = tokens.flatten(0, 1)
        n_layers, dim = self.options.n_layers, self.options.output_dim
        directions = list(zip(self.stacks, (packing.forward_index, packing.backward_index)))
        # A token's row is a row of each direction.
        layers = tokens.new_zeros(n_layers * tokens.size(0) * len(directions), dim)
        restore = packing.order.argsort()
        inputs, final_states = [tokens[index] for _, index in directions], []
        for number in range(n_layers):
            initial = None
            if state is not None:
                initial = [_reorder(part, packing.order) for part in state[number]]
            parallel: List[Any] = [stack[number] for stack, _ in directions]
            results = run_layers(parallel, inputs, packing.batch_sizes, initial)
            inputs = [self._skip(number, output, x) for (output, _), x in zip(results, inputs)]
            for direction, (_, index) in enumerate(directions):
                rows = (number * tokens.size(0) + index) * len(directions) + direction
                # Under autocast, vectors that a table looks up stay float32.
                layers[rows] = inputs[direction].to(layers.dtype)
            final_states.append(tuple(_reorder(final, restore) for _, final in results))
        return layers.view(n_layers, batch_size, num_tokens, len(directions) * dim), final_states

    def run_stack(
        self,
        stack: torch.nn.ModuleList,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        initial: Optional[Sequence[RecurrentState]] = None,
        dropout: Callable[[torch.Tensor], torch.Tensor] = lambda inputs: inputs,
    ) -> Tuple[List[torch.Tensor], List[RecurrentState]]:
        """
        Runs one of `stacks`, and returns the output and the final state of each layer.

        `inputs` are tokens in packed order, shape `(num_packed, token_dim)`; outputs have shape
        `(num_packed, output_dim)`. `batch_sizes` is the number of sentences at each step. States,
        initially zeros by default, have the longest sentence first. `dropout` is applied to the
        input of each layer before the skip connection adds that input, as in bilm-tf.
        """
        outputs: List[torch.Tensor] = []
        finals: List[RecurrentState] = []
        for number, layer in enumerate(stack):
            inputs = dropout(inputs)
            output, final = layer(inputs, batch_sizes, initial and initial[number])
            inputs = self._skip(number, output, inputs)
            outputs.append(inputs)
            finals.append(final)
        return outputs, finals

    def _skip(self, number: int, output: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Adds the skip connection, if the options have it and this is not the first layer."""
        return output + inputs if number and self.options.use_skip_connections else output


def _stack(options: BilmOptions) -> torch.nn.ModuleList:
    dims = [options.token_dim] + [options.lstm.output_dim] * (options.lstm.n_layers - 1)
    return torch.nn.ModuleList(_layer(dim, options.lstm) for dim in dims)


def _layer(input_dim: int, options: LstmOptions) -> RecurrentLayer:
    """A layer with TensorFlow's default initialisation, Glorot uniform."""
    cell = LstmCell(options.cell_clip, options.proj_clip, forget_bias=1.0)
    layer = RecurrentLayer(cell, input_dim, options.dim, options.projection_dim)
    # The bound for TensorFlow's single matrix of the input and recurrent weights of all gates.
    bound = (6.0 / (input_dim + layer.output_dim + layer.bias.numel())) ** 0.5
    with torch.no_grad():
        for parameter in ("input", "recurrent"):
            for weight in layer.gates(parameter).values():
                torch.nn.init.uniform_(weight, -bound, bound)
        if layer.projection is not None:
            torch.nn.init.xavier_uniform_(layer.projection.weight)
    return layer


def _reorder(state: RecurrentState, order: torch.Tensor) -> RecurrentState:
    return RecurrentState(*(part[order] for part in state))
