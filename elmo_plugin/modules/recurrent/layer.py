from typing import Dict, List, Optional, Sequence

import torch

from elmo_plugin.modules.packed_linear import PackedLinear, tracks_gradients
from elmo_plugin.modules.recurrent.cells import Cell, Weights
from elmo_plugin.modules.recurrent.compiled_scan import CompiledScan
from elmo_plugin.modules.recurrent.cudnn import Cudnn
from elmo_plugin.modules.recurrent.exported import exported_steps
from elmo_plugin.modules.recurrent.graph_scan import GraphScan
from elmo_plugin.modules.recurrent.loop import Loop
from elmo_plugin.modules.recurrent.scan import Backend, LayerCall, RecurrentState, Result, Run
from elmo_plugin.util.tensors import is_exporting

#: Tried in this order; the first that can run computes all time steps.
BACKENDS: Sequence[Backend] = (Cudnn(), GraphScan(), CompiledScan(), Loop())


class RecurrentLayer(torch.nn.Module):
    """
    One direction of a recurrent layer over packed sentences, with any cell.

    The owner draws the initial weights; the bias starts at zero. The cell defines the order of the
    gates. Its output is projected to `projection_dim`, if that is given. Without gradients the
    layer uses packed copies of its weights, see `PackedLinear`.
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
        """Views of each gate's rows of `input`, `recurrent` or `bias`, in the order of drawing."""
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
    ) -> Result:
        """
        Runs all steps over `inputs`, shape `(num_packed, input_dim)`, tokens in the order of a
        `Packing`. Returns the hidden states, shape `(num_packed, output_dim)`, and each sentence's
        last state.

        `batch_sizes` are the numbers of sentences at each step, in descending order. `state` is the
        state before the first step, in packed order; zeros when not given. `cell` is the layer's
        cell with other settings, for this call only.
        """
        return run_layers([self], [inputs], batch_sizes, [state], cell)[0]

    def _call(self, inputs: torch.Tensor, state: Optional[RecurrentState], cell: Cell) -> LayerCall:
        layers = self.input, self.recurrent, self.projection
        given = [layer for layer in layers if layer is not None]
        # Without gradients, do not even list the parameters: it takes as long as a product.
        if torch.is_grad_enabled() and tracks_gradients(inputs, *(state or ()), *self.parameters()):
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
) -> List[Result]:
    """
    Runs layers with the same cell, widths and batch sizes, such as two directions, in parallel if
    there are threads for it. Takes and returns for each layer what `RecurrentLayer.forward` does.
    """
    cell = cell or layers[0].cell
    every = zip(layers, inputs, states or [None] * len(layers))
    calls = [layer._call(values, state, cell) for layer, values, state in every]
    return recurrences(cell, calls, batch_sizes)


def recurrences(cell: Cell, calls: Sequence[LayerCall], batch_sizes: Sequence[int]) -> List[Result]:
    """
    Runs all time steps of layers of the same widths, by the first of `BACKENDS` that can.

    Under `torch.autocast` products are in its type, or in float32 where that is faster. The steps
    between products are in float32 at least, so that cell states do not drift over a long sentence.
    With gradients, about `(num_gates + 2) * hidden_dim` numbers per token are kept for the backward
    pass, which allocates as many again. Without, only the results grow with the number of tokens.
    """
    if is_exporting():
        return [exported_steps(cell, call, batch_sizes[0]) for call in calls]
    for call in calls:
        _check_fit(cell, call, batch_sizes)
    weights = calls[0].weights
    dtype, device = weights.bias.dtype, weights.bias.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    has_gradients = torch.is_grad_enabled() and tracks_gradients(
        *(part for each in calls for part in (each.inputs, *(each.state or ()), *each.weights))
    )
    run = Run(cell, calls, list(batch_sizes))
    backend = next(
        backend
        for backend in BACKENDS
        if backend.device in (None, device) and backend.can_run(run, dtype, has_gradients)
    )
    inputs_dtype = dtype if backend.follows_autocast else weights.bias.dtype
    with torch.autocast(device, enabled=False):
        calls = [call._replace(inputs=call.inputs.to(inputs_dtype)) for call in calls]
        run = run._replace(calls=calls)
        results = backend.differentiable(run) if has_gradients else backend.forward(run)
    if inputs_dtype == dtype:
        return results
    return [
        (outputs.to(dtype), RecurrentState(state.hidden.to(dtype), state.cell))
        for outputs, state in results
    ]


def _check_fit(cell: Cell, call: LayerCall, batch_sizes: Sequence[int]) -> None:
    """Asserts the shapes, which the compiled code does not check."""
    inputs, weights, state, _ = call
    dim, sizes = weights.hidden_dim(cell), list(batch_sizes)
    assert sum(sizes) == len(inputs) and sizes == sorted(sizes, reverse=True), sizes
    assert weights.recurrent.size(0) == cell.num_recurrent_gates * dim, weights.recurrent.shape
    assert weights.input.shape == (cell.num_input_gates * dim, inputs.size(1)), inputs.shape
    if weights.projection is not None:
        assert weights.projection.shape == (weights.output_dim, dim), weights.projection.shape
    assert weights.bias.numel() == len(cell.gates) * dim, weights.bias.shape
    for part, width in zip(state or (), (weights.output_dim, dim)):
        assert len(part) >= max(sizes, default=0) and part.size(1) == width, part.shape
