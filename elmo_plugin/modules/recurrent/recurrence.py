"""A recurrent layer over packed sentences as one differentiable function, for any cell."""

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_plugin.modules.linear.packed import PackedMatrix
from elmo_plugin.modules.linear.products import (
    column_sums,
    onednn_compiles,
    padded_rows,
    transposed_product,
)
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.compiled_scan import (
    can_scan,
    compiled_backward,
    compiled_forward,
    is_small,
)
from elmo_plugin.modules.recurrent.cudnn import can_call_cudnn, cudnn_recurrences
from elmo_plugin.modules.recurrent.graph_scan import can_capture, graph_backward, graph_forward
from elmo_plugin.modules.recurrent.scan import (
    LayerCall,
    RecurrentState,
    SavedActivations,
    backward_scan,
    forward_scan,
    large_buffer,
)
from elmo_plugin.modules.recurrent.weights import Weights
from elmo_plugin.util.gradients import tracks_gradients

# Columns of ones beside the inputs: their product with the gates' gradients is the bias gradient.
# One is used; sixteen keep the width of the product a multiple of 16.
_ONES = 16


def recurrences(
    cell: Cell, calls: Sequence[LayerCall], batch_sizes: Sequence[int]
) -> List[Tuple[torch.Tensor, RecurrentState]]:
    """
    All time steps of recurrent layers of the same widths: in parallel, if there are threads for it.

    Under `torch.autocast` products are in its type, or in float32 where that is faster; the steps
    between products are never computed in less than float32, so that cell states do not drift over
    a long sentence. If gradients are tracked, about `(num_gates + 2) * hidden_dim` numbers per
    token are kept for the backward pass, which allocates as many again; otherwise only the results
    grow with the number of tokens.

    # Parameters

    cell : `Cell`
        The arithmetic of a step.
    calls : `Sequence[LayerCall]`
        One direction of one layer each.
    batch_sizes : `Sequence[int]`
        Number of sentences at each step, in descending order.

    # Returns

    `List[Tuple[torch.Tensor, RecurrentState]]`
        For each layer the hidden states, shape `(num_packed, output_dim)`, and the state after each
        sentence's last token.
    """
    device = calls[0].inputs.device.type
    for call in calls:
        _check_fit(cell, call, batch_sizes)
    tensors = [
        tensor for each in calls for tensor in (each.inputs, *(each.state or ()), *each.weights)
    ]
    weights, num_sentences = calls[0].weights, max(batch_sizes, default=0)
    dtype, full = _product_dtype(weights), weights.bias.dtype
    in_float32 = None
    if can_call_cudnn(cell, calls):
        in_float32 = cudnn_recurrences
    elif dtype != full and is_small(weights, num_sentences) and can_scan(cell, weights, full):
        # The compiled scan in float32 is faster than single steps in bfloat16.
        in_float32 = recurrences
    if in_float32 is not None:
        with torch.autocast(device, enabled=False):
            exact = in_float32(cell, calls, batch_sizes)
        return [
            (outputs.to(dtype), RecurrentState(state.hidden.to(dtype), state.cell))
            for outputs, state in exact
        ]
    if tracks_gradients(*tensors):
        return [_differentiable(cell, call, batch_sizes) for call in calls]
    scan = _scan_of(cell, weights, dtype, num_sentences)
    with torch.autocast(device, enabled=False):
        calls = [call._replace(inputs=call.inputs.to(dtype)) for call in calls]
        return scan.forward(cell, calls, batch_sizes)


class _Scan(NamedTuple):
    """Functions that compute all steps of layers, and their gradients."""

    forward: Callable[..., List[Tuple[torch.Tensor, RecurrentState]]]
    backward: Callable[..., RecurrentState]


_COMPILED = _Scan(compiled_forward, compiled_backward)
_GRAPH = _Scan(graph_forward, graph_backward)
_STEP_BY_STEP = _Scan(forward_scan, backward_scan)


def _scan_of(
    cell: Cell, weights: Weights, dtype: torch.dtype, num_sentences: Optional[int] = None
) -> _Scan:
    if can_scan(cell, weights, dtype, num_sentences):
        return _COMPILED
    return _GRAPH if can_capture(cell, weights, dtype) else _STEP_BY_STEP


def _differentiable(
    cell: Cell, call: LayerCall, batch_sizes: Sequence[int]
) -> Tuple[torch.Tensor, RecurrentState]:
    inputs, weights, state, _ = call
    outputs, *final = _Recurrence.apply(
        cell, list(batch_sizes), inputs, *(state or (None, None)), *weights
    )
    return outputs, RecurrentState(*final)


def _check_fit(cell: Cell, call: LayerCall, batch_sizes: Sequence[int]) -> None:
    """Asserts the shapes, which the compiled code does not check."""
    inputs, weights, state, _ = call
    dim, sizes = weights.hidden_dim(cell), list(batch_sizes)
    assert sum(sizes) == len(inputs) and sizes == sorted(sizes, reverse=True), sizes
    assert weights.recurrent.size(0) == cell.num_recurrent_gates * dim, weights.recurrent.shape
    assert weights.input.shape == (cell.num_input_gates * dim, inputs.size(1)), (
        weights.input.shape,
        inputs.shape,
    )
    if weights.projection is not None:
        assert weights.projection.shape == (weights.output_dim, dim), weights.projection.shape
    assert weights.bias.numel() == len(cell.gates) * dim, weights.bias.shape
    for part, width in zip(state or (), (weights.output_dim, dim)):
        assert len(part) >= max(sizes, default=0) and part.size(1) == width, part.shape


class _Recurrence(torch.autograd.Function):
    """
    The forward scan, with the backward scan as its gradient. If autograd recorded the steps, the
    gradient of each weight would be one product per step; here it is one product over all steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        batch_sizes: List[int],
        inputs: torch.Tensor,
        hidden: Optional[torch.Tensor],
        cell_state: Optional[torch.Tensor],
        *parts: Any,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """`parts` are those of the `Weights`."""
        weights = Weights(*parts)
        dtype = _product_dtype(weights)
        state = None
        if hidden is not None and cell_state is not None:
            state = RecurrentState(hidden, cell_state)
        with torch.autocast(inputs.device.type, enabled=False):
            inputs = inputs.to(dtype)
            scan = _scan_of(cell, weights, dtype)
            gates_dtype = dtype if scan is _GRAPH else None
            activations = SavedActivations.empty(cell, inputs, weights, gates_dtype)
            calls = [LayerCall(inputs, weights, state)]
            ((outputs, final),) = scan.forward(cell, calls, batch_sizes, [activations])
        ctx.save_for_backward(inputs, hidden, cell_state, *parts, *activations)
        ctx.cell, ctx.batch_sizes, ctx.scan = cell, batch_sizes, scan
        return outputs, *final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """Gradients of the tensors that `forward` takes, from those of its results."""
        inputs, hidden, cell_state, *saved = ctx.saved_tensors
        weights, activations = Weights(*saved[:4]), SavedActivations(*saved[4:])
        state = None if hidden is None else RecurrentState(hidden, cell_state)
        arguments = (ctx.cell, weights, ctx.batch_sizes, state, activations, gradients)
        with torch.autocast(inputs.device.type, enabled=False):
            # With the padding that products need, so that they do not copy it.
            num_rows = padded_rows(len(inputs))
            d_gates = large_buffer(inputs, num_rows, activations.gates.size(1), inputs.dtype)
            d_gates[len(inputs) :] = 0.0
            d_projected = None
            if weights.projection is not None:
                d_projected = torch.empty_like(activations.hidden_states)
            d_state = ctx.scan.backward(*arguments, d_gates[: len(inputs)], d_projected)
            d_inputs = None
            if ctx.needs_input_grad[2]:
                through_inputs = PackedMatrix(weights.input.t().to(inputs.dtype))
                rows = d_gates[:, -weights.input.size(0) :]
                d_inputs = through_inputs.product(rows)[: len(inputs)]
            d_weights = _weight_gradients(
                weights, ctx.batch_sizes, inputs, hidden, activations, d_gates, d_projected
            )
        return None, None, d_inputs, *((None, None) if state is None else d_state), *d_weights


def _weight_gradients(
    weights: Weights,
    batch_sizes: List[int],
    inputs: torch.Tensor,
    hidden: Optional[torch.Tensor],
    activations: SavedActivations,
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
) -> Weights:
    """The gradient of each weight, one product over all steps; `d_gates` has rows of padding."""
    full = weights.bias.dtype
    # Hidden states of the step before; the first step has none unless a state was given.
    first_size = max(batch_sizes, default=0)
    if hidden is None:
        hidden = activations.hidden_states.new_zeros(first_size, activations.hidden_states.size(1))
    earlier = [hidden[:first_size].to(inputs.dtype)]
    start = 0
    for size, next_size in zip(batch_sizes, batch_sizes[1:]):
        earlier.append(activations.hidden_states[start : start + next_size])
        start += size
    d_projection = None
    if d_projected is not None:
        d_projection = transposed_product(d_projected, activations.cell_outputs).to(full)
    if onednn_compiles(d_gates) and len(weights.input) == len(weights.recurrent) == d_gates.size(1):
        # One product instead of three, which takes two thirds of their time.
        ones = inputs.new_ones(len(inputs), _ONES)
        joined = torch.cat([inputs, torch.cat(earlier), ones], dim=1)
        parts = transposed_product(joined, d_gates).to(full)
        d_input, d_recurrent, d_bias = parts.split(
            [inputs.size(1), activations.hidden_states.size(1), _ONES]
        )
        return Weights(d_input.t(), d_recurrent.t(), d_bias[0], d_projection)
    d_recurrent_gates = d_gates[:, : weights.recurrent.size(0)]
    d_input_gates = d_gates[:, -weights.input.size(0) :]
    return Weights(
        transposed_product(d_input_gates, inputs).to(full),
        transposed_product(d_recurrent_gates, torch.cat(earlier)).to(full),
        column_sums(d_gates).to(full),
        d_projection,
    )


def _product_dtype(weights: Weights) -> torch.dtype:
    device = weights.bias.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return weights.bias.dtype
