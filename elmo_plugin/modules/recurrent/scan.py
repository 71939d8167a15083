"""The forward and backward scan of a recurrent layer over packed sentences, for any cell."""

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.linear.packed import PackedMatrix
from elmo_plugin.modules.linear.products import padded_rows
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.kernel_step import step_of
from elmo_plugin.modules.recurrent.weights import LinearLayers, Products, Weights


class RecurrentState(NamedTuple):
    """The state of a recurrent layer at one time step."""

    #: Shape `(batch_size, output_dim)`.
    hidden: torch.Tensor
    #: Shape `(batch_size, hidden_dim)`.
    cell: torch.Tensor


class LayerCall(NamedTuple):
    """One direction of a recurrent layer, and what it reads."""

    #: Shape `(num_packed, input_dim)`. Tokens in the order of a `Packing`.
    inputs: torch.Tensor
    weights: Weights
    #: State before the first step, longest sentence first; zeros when not given.
    state: Optional[RecurrentState] = None
    #: Used without gradients: the layers that cache packed copies of the weights.
    layers: Optional[LinearLayers] = None


class SavedActivations(NamedTuple):
    """What the backward scan needs of all steps."""

    #: Shape `(num_packed, num_gates * hidden_dim)`. Before or after their activation functions: the
    #: backward scan of the same code reads them.
    gates: torch.Tensor
    #: Shape `(num_packed, hidden_dim)`.
    cell_states: torch.Tensor
    #: Shape `(num_packed, hidden_dim)` and `(num_packed, output_dim)`, in the type of the products:
    #: before and after the projection; the same tensor without one.
    cell_outputs: torch.Tensor
    hidden_states: torch.Tensor

    @classmethod
    def empty(
        cls,
        cell: Cell,
        inputs: torch.Tensor,
        weights: Weights,
        gates_dtype: Optional[torch.dtype] = None,
    ) -> "SavedActivations":
        """
        Activations with uninitialised tensors, in the types that `forward_scan` needs;
        `gates_dtype` is another type for the gates.
        """
        num_packed, dim = len(inputs), weights.hidden_dim(cell)
        full = torch.promote_types(inputs.dtype, torch.float32)
        hidden_states = inputs.new_empty(num_packed, weights.output_dim)
        return cls(
            large_buffer(inputs, num_packed, len(cell.gates) * dim, gates_dtype or full),
            large_buffer(inputs, num_packed, dim, full),
            hidden_states if weights.projection is None else inputs.new_empty(num_packed, dim),
            hidden_states,
        )


def outputs_of(
    inputs: torch.Tensor, weights: Weights, activations: Optional[SavedActivations]
) -> torch.Tensor:
    """Where a scan writes the hidden states: shape `(num_packed, output_dim)`."""
    if activations is not None:
        return activations.hidden_states
    return inputs.new_empty(len(inputs), weights.output_dim)


def forward_scan(
    cell: Cell,
    calls: Sequence[LayerCall],
    batch_sizes: Sequence[int],
    saved: Optional[Sequence[SavedActivations]] = None,
) -> List[Tuple[torch.Tensor, RecurrentState]]:
    """
    The time steps of each layer, without gradients. Fills the activations if they are given;
    otherwise the memory needed besides the hidden states does not grow with the number of steps.

    # Parameters

    cell : `Cell`
    calls : `Sequence[LayerCall]`
        The inputs are in the type of the products (float32, float64 or bfloat16).
    batch_sizes : `Sequence[int]`
        The number of sentences in each step, which never grows; their sum is `num_packed`.
    saved : `Optional[Sequence[SavedActivations]]`
        Of each layer.

    # Returns

    `List[Tuple[torch.Tensor, RecurrentState]]`
        Of each layer the hidden states, shape `(num_packed, output_dim)`, in the type of the
        inputs; and the state of each sentence after its last token.
    """
    return [
        _forward_scan(cell, call, batch_sizes, saved[number] if saved else None)
        for number, call in enumerate(calls)
    ]


def _forward_scan(
    cell: Cell,
    call: LayerCall,
    batch_sizes: Sequence[int],
    activations: Optional[SavedActivations],
) -> Tuple[torch.Tensor, RecurrentState]:
    inputs, weights, state, layers = call
    # Computations between matrix products are in float32 at least.
    full = torch.promote_types(inputs.dtype, torch.float32)
    dim, batch_size = weights.hidden_dim(cell), max(batch_sizes, default=0)
    step_function = step_of(cell, inputs.device, inputs.dtype, dim, batch_size)
    products = weights.products(inputs.dtype, layers)
    outputs = outputs_of(inputs, weights, activations)
    hidden, cell_state = state or (None, outputs.new_zeros(batch_size, dim, dtype=full))
    hidden = hidden if hidden is None else hidden.to(inputs.dtype)
    cell_state = cell_state.to(full).contiguous()
    buffer = outputs.new_empty(batch_size, dim)
    ended: List[Tuple[torch.Tensor, torch.Tensor]] = []
    for step, input_gates in _steps(inputs, batch_sizes, weights, products):
        size = len(input_gates)
        if len(cell_state) > size:
            # Copies: a slice would keep the states of all sentences alive.
            assert hidden is not None
            ended.append((hidden[size:].clone(), cell_state[size:].clone()))
        if hidden is None:
            # The product with a state of zeros.
            recurrent = input_gates.new_zeros(size, weights.recurrent.size(0))
            if weights.recurrent_bias is not None:
                recurrent += weights.recurrent_bias
        else:
            # With rows of ended sentences as padding, so that the product need not pad its inputs.
            recurrent = products.recurrent(hidden[: padded_rows(size)])[:size]
        gates = activations.gates[step] if activations else None
        new_cell_state = (
            activations.cell_states[step] if activations else torch.empty_like(cell_state[:size])
        )
        hidden = cell_output = outputs[step]
        if products.projection is not None:
            cell_output = activations.cell_outputs[step] if activations else buffer[:size]
        step_function.forward(
            input_gates, recurrent, cell_state[:size], gates, new_cell_state, cell_output
        )
        cell_state = new_cell_state
        if products.projection is not None:
            hidden.copy_(products.projection(cell_output))
            if cell.projection_clip:
                hidden.clamp_(-cell.projection_clip, cell.projection_clip)
    ended.append((outputs if hidden is None else hidden, cell_state))
    return outputs, _final_state(ended, weights.bias.dtype)


def _final_state(
    ended: List[Tuple[torch.Tensor, torch.Tensor]], dtype: torch.dtype
) -> RecurrentState:
    # Shorter sentences ended first but come last.
    hidden_states, cell_states = zip(*reversed(ended))
    return RecurrentState(torch.cat(hidden_states), torch.cat(cell_states).to(dtype))


def _steps(
    inputs: torch.Tensor, batch_sizes: Sequence[int], weights: Weights, products: Products
) -> Iterator[Tuple[slice, torch.Tensor]]:
    """The rows of each step, and the products of its inputs."""
    start = 0
    for sizes in _chunks(batch_sizes, tuning.MAX_INPUT_GATES // weights.input.size(0)):
        # Shape: (num_packed of this chunk or a few more, num_input_gates * hidden_dim)
        gates = products.input(inputs[start : start + padded_rows(sum(sizes))])
        first = start
        for size in sizes:
            step, start = slice(start, start + size), start + size
            yield step, gates[step.start - first : step.stop - first]


def backward_scan(
    cell: Cell,
    weights: Weights,
    batch_sizes: List[int],
    state: Optional[RecurrentState],
    activations: SavedActivations,
    gradients: Tuple[torch.Tensor, ...],
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
) -> RecurrentState:
    """
    From the gradients of the hidden states and of the final state, fills `d_gates` (gradients of
    the gates) and `d_projected` (of the projections before their clip), and returns the gradient of
    the initial state.

    # Parameters

    cell, weights, batch_sizes, state, activations
        As in `forward_scan`, which has filled the activations.
    gradients : `Tuple[torch.Tensor, ...]`
        Of the hidden states, shape `(num_packed, output_dim)`, and of the final state's two parts,
        shapes `(batch_size, output_dim)` and `(batch_size, hidden_dim)`.
    d_gates : `torch.Tensor`
        Shape `(num_packed, num_gates * hidden_dim)`, in the type of the products.
    d_projected : `Optional[torch.Tensor]`
        Shape `(num_packed, output_dim)`, in that type; `None` without a projection.
    """
    full, dtype = activations.cell_states.dtype, d_gates.dtype
    d_outputs = gradients[0].to(full)
    d_hidden, d_cell = (dense_copy(gradient, full) for gradient in gradients[1:])
    initial = torch.zeros_like(d_cell) if state is None else dense_copy(state.cell, full)
    through_recurrent = PackedMatrix(weights.recurrent.t().to(dtype))
    through_projection = None
    if weights.projection is not None:
        through_projection = PackedMatrix(weights.projection.t().to(dtype))
    buffer = torch.empty_like(d_hidden)
    step_function = step_of(
        cell, d_gates.device, dtype, weights.hidden_dim(cell), max(batch_sizes, default=0)
    )
    end = len(d_gates)
    for number in reversed(range(len(batch_sizes))):
        size = batch_sizes[number]
        step, end = slice(end - size, end), end - size
        before = end - batch_sizes[number - 1]
        previous = activations.cell_states[before : before + size] if number else initial[:size]
        d_output = torch.add(d_outputs[step], d_hidden[:size], out=buffer[:size])
        if through_projection is not None and d_projected is not None:
            _stop_at_clip(d_output, activations.hidden_states[step], cell.projection_clip)
            d_projected[step] = d_output
            rows = d_projected[end : end + padded_rows(size)]
            d_output = through_projection.product(rows)[:size].to(full)
        of_step = (activations.gates[step], previous, activations.cell_states[step])
        step_function.backward(*of_step, d_output, d_cell[:size], d_gates[step])
        if number or state is not None:
            rows = d_gates[end : end + padded_rows(size), : weights.recurrent.size(0)]
            d_hidden[:size] = through_recurrent.product(rows)[:size]
    return RecurrentState(d_hidden, d_cell)


def _stop_at_clip(gradient: torch.Tensor, clipped: torch.Tensor, clip: Optional[float]) -> None:
    """Zeroes in place the gradient of values that `clamp` has changed."""
    if clip:
        # Compared in the type of `clipped`, in which the bound was rounded likewise.
        gradient.mul_(clipped.abs() < clip)


def dense_copy(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A contiguous copy in another type."""
    return values.to(dtype, memory_format=torch.contiguous_format, copy=True)


def large_buffer(like: torch.Tensor, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """
    An uninitialised tensor of shape `(rows, columns)` on the device of `like`.

    The system hands out new memory page by page: for 40 MB that takes as long as a matrix product
    of that size. NumPy asks for large pages, PyTorch does not.
    """
    num_bytes = rows * columns * dtype.itemsize
    if like.device.type != "cpu" or num_bytes < tuning.LARGE_BUFFER:
        return torch.empty(rows, columns, dtype=dtype, device=like.device)
    # Aligned as PyTorch aligns its own tensors.
    buffer = torch.from_numpy(numpy.empty(num_bytes + 64, dtype=numpy.uint8))
    start = -buffer.data_ptr() % 64
    return buffer[start : start + num_bytes].view(dtype).view(rows, columns)


def _chunks(batch_sizes: Sequence[int], most: int) -> List[List[int]]:
    """Groups steps so that each group holds at most `most` tokens, or is one step."""
    chunks: List[List[int]] = []
    filled = most
    for size in batch_sizes:
        if not chunks or filled + size > most:
            chunks.append([])
            filled = 0
        chunks[-1].append(size)
        filled += size
    return chunks
