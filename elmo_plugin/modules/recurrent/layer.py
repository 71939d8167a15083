"""The recurrent layer that all encoders and the biLM are made of."""

from typing import Dict, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.modules.linear.packed import PackedLinear
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.recurrence import recurrences
from elmo_plugin.modules.recurrent.scan import LayerCall, RecurrentState
from elmo_plugin.modules.recurrent.weights import Weights
from elmo_plugin.util.gradients import tracks_gradients


class RecurrentLayer(torch.nn.Module):
    """
    One direction of one recurrent layer over packed sentences, with any cell.

    The owner draws the initial weights; the bias starts at zero. Without gradients the layer uses
    packed copies of its weights, see `PackedLinear`.

    # Parameters

    cell : `Cell`
        The arithmetic of a step, which also defines the order of the gates in all weights.
    input_dim, hidden_dim : `int`
        Widths of the inputs and of the cell state.
    projection_dim : `Optional[int]`, optional (default = `None`)
        Width to which the cell's output is projected; no projection when not given.
    """

    def __init__(
        self, cell: Cell, input_dim: int, hidden_dim: int, projection_dim: Optional[int] = None
    ) -> None:
        super().__init__()
        self.cell = cell
        self.hidden_dim = hidden_dim
        self.output_dim = hidden_dim if projection_dim is None else projection_dim
        self.input = PackedLinear(input_dim, cell.num_input_gates * hidden_dim, bias=False)
        self.recurrent = PackedLinear(
            self.output_dim, cell.num_recurrent_gates * hidden_dim, bias=False
        )
        self.bias = torch.nn.Parameter(torch.zeros(cell.num_bias_gates * hidden_dim))
        self.projection: Optional[PackedLinear] = None
        if projection_dim is not None:
            self.projection = PackedLinear(hidden_dim, projection_dim, bias=False)

    def gates(self, parameter: str) -> Dict[str, torch.Tensor]:
        """
        Views of each gate's rows of the parameter `input`, `recurrent` or `bias`, in the order in
        which initial values are drawn.
        """
        cell = self.cell
        names, values = {
            "input": (cell.gates[-cell.num_input_gates :], self.input.weight),
            "recurrent": (cell.gates[: cell.num_recurrent_gates], self.recurrent.weight),
            "bias": (cell.gates[: cell.num_bias_gates], self.bias),
        }[parameter]
        views = dict(zip(names, values.split(self.hidden_dim)))
        return {name: views[name] for name in cell.draw_order if name in views}

    def weights(self, cell: Optional[Cell] = None) -> Weights:
        """The weights, with the full bias of the cell."""
        return Weights(
            self.input.weight,
            self.recurrent.weight,
            (cell or self.cell).full_bias(self.bias),
            None if self.projection is None else self.projection.weight,
        )

    def forward(
        self,
        inputs: torch.Tensor,
        batch_sizes: Sequence[int],
        state: Optional[RecurrentState] = None,
        cell: Optional[Cell] = None,
    ) -> Tuple[torch.Tensor, RecurrentState]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_packed, input_dim)`. Tokens in the order of a `Packing`.
        batch_sizes : `Sequence[int]`
            Number of sentences at each step, in descending order.
        state : `Optional[RecurrentState]`
            State before the first step, sentences in packed order; zeros when not given.
        cell : `Optional[Cell]`
            The cell with other settings, for this call only.

        # Returns

        outputs : `torch.Tensor`
            Shape `(num_packed, output_dim)`. The hidden states.
        state : `RecurrentState`
            State after each sentence's last token.
        """
        return run_layers([self], [inputs], batch_sizes, [state], cell)[0]

    def _call(self, inputs: torch.Tensor, state: Optional[RecurrentState], cell: Cell) -> LayerCall:
        layers = self.input, self.recurrent, self.projection
        given = [layer for layer in layers if layer is not None]
        if tracks_gradients(inputs, *(state or ()), *self.parameters()):
            for layer in given:
                layer.drop_packed()
        caches = all(layer.caches_packed for layer in given)
        return LayerCall(inputs, self.weights(cell), state, layers if caches else None)


def run_layers(
    layers: Sequence[RecurrentLayer],
    inputs: Sequence[torch.Tensor],
    batch_sizes: Sequence[int],
    states: Optional[Sequence[Optional[RecurrentState]]] = None,
    cell: Optional[Cell] = None,
) -> List[Tuple[torch.Tensor, RecurrentState]]:
    """
    Runs layers with the same cell, widths and batch sizes, each on its own inputs, such as the two
    directions of a bidirectional layer: in parallel, if there are threads for it. Parameters and
    results of each layer are those of `RecurrentLayer.forward`.
    """
    cell = cell or layers[0].cell
    every = zip(layers, inputs, states or [None] * len(layers))
    calls = [layer._call(values, state, cell) for layer, values, state in every]
    return recurrences(cell, calls, batch_sizes)
