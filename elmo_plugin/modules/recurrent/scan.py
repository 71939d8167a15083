"""What every backend of a recurrent layer computes: all time steps, and their gradients."""

from abc import ABC, abstractmethod
from math import inf
from typing import Any, ClassVar, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy
import torch
from torch.autograd.function import once_differentiable

from elmo_plugin.modules import tuning
from elmo_plugin.modules.packed_linear import (
    PackedLinear,
    PackedMatrix,
    column_sums,
    onednn_compiles,
    padded_rows,
    transposed_product,
)
from elmo_plugin.modules.recurrent.cells import Cell, Weights

# Columns of ones beside the inputs: their product with the gates' gradients is the bias gradient.
# One is used; sixteen keep the width of the product a multiple of 16.
_ONES = 16


class RecurrentState(NamedTuple):
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
    #: Owners of the input, the recurrent and the projection weights, if they cache packed copies.
    layers: Optional[Tuple[PackedLinear, PackedLinear, Optional[PackedLinear]]] = None


class Run(NamedTuple):
    """What a backend computes: layers of the same widths, for sentences of the same lengths."""

    cell: Cell
    calls: Sequence[LayerCall]
    #: Number of sentences at each step, in descending order.
    batch_sizes: List[int]

    @property
    def num_sentences(self) -> int:
        """Number of sentences that have a token."""
        return max(self.batch_sizes, default=0)


class SavedActivations(NamedTuple):
    """What `backward` needs of all steps."""

    #: Shape `(num_packed, num_gates * hidden_dim)`. Pre- or post-activation, as the `backward` of
    #: the same backend expects.
    gates: torch.Tensor
    #: Shape `(num_packed, hidden_dim)`.
    cell_states: torch.Tensor
    #: Shape `(num_packed, hidden_dim)` and `(num_packed, output_dim)`, in the type of the products:
    #: before and after the projection; the same tensor without one.
    cell_outputs: torch.Tensor
    hidden_states: torch.Tensor


class Gradients(NamedTuple):
    """Gradients of one layer. The first three are given, the others are to be filled."""

    #: For the hidden states and both parts of the final state, in their shapes.
    outputs: torch.Tensor
    hidden: torch.Tensor
    cell: torch.Tensor
    #: For the gates, shape `(num_packed, num_gates * hidden_dim)`, and for the projections before
    #: their clip, shape `(num_packed, output_dim)`; in the type of the products.
    gates: torch.Tensor
    projected: Optional[torch.Tensor]


Result = Tuple[torch.Tensor, RecurrentState]


class Backend(ABC):
    """One way to compute the time steps of recurrent layers, see `layer.BACKENDS`."""

    #: The type of device it needs; `None` for any.
    device: ClassVar[Optional[str]] = None
    #: Whether products are in the type of `torch.autocast`, or always in the weights' type.
    follows_autocast: ClassVar[bool] = True
    #: Whether gates are saved in the type of the products, or in float32 at least.
    saves_product_type: ClassVar[bool] = False

    def can_run(self, run: Run, dtype: torch.dtype, has_gradients: bool) -> bool:
        """True if it runs such layers; `dtype` is the products' type, autocast's if enabled."""
        return True

    @abstractmethod
    def forward(self, run: Run, saved: Optional[Sequence[SavedActivations]] = None) -> List[Result]:
        """
        Runs the time steps of all layers, in parallel if there are threads for it. Fills `saved`,
        the activations of each layer, if given. Otherwise memory besides the hidden states does not
        grow with the number of steps.

        Returns for each layer the hidden states, shape `(num_packed, output_dim)`, in the type of
        the inputs, which is that of the products; and each sentence's state after its last token.
        """

    def backward(self, run: Run, saved: SavedActivations, d: Gradients) -> RecurrentState:
        """Fills the gradients of a run of one layer, and returns the initial state's."""
        raise NotImplementedError

    def differentiable(self, run: Run) -> List[Result]:
        """`forward`, with gradients by `backward`."""
        results = []
        for inputs, weights, state, _ in run.calls:
            outputs, *final = _Scan.apply(
                self, run.cell, run.batch_sizes, inputs, *(state or (None, None)), *weights
            )
            results.append((outputs, RecurrentState(*final)))
        return results

    def empty_activations(self, cell: Cell, call: LayerCall) -> SavedActivations:
        """Uninitialised tensors for `forward` to fill."""
        inputs, weights = call.inputs, call.weights
        num_packed, dim = len(inputs), weights.hidden_dim(cell)
        full = torch.promote_types(inputs.dtype, torch.float32)
        gates_dtype = inputs.dtype if self.saves_product_type else full
        hidden_states = inputs.new_empty(num_packed, weights.output_dim)
        return SavedActivations(
            large_buffer(inputs, num_packed, len(cell.gates) * dim, gates_dtype),
            large_buffer(inputs, num_packed, dim, full),
            hidden_states if weights.projection is None else inputs.new_empty(num_packed, dim),
            hidden_states,
        )


class _Scan(torch.autograd.Function):
    """
    A backend's `forward`, with its `backward` as gradient. Each weight's gradient is one product
    over all steps; if autograd recorded the steps, it would be one product per step.
    """

    @staticmethod
    def forward(
        ctx: Any, backend: Backend, cell: Cell, batch_sizes: List[int], *tensors: Any
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """`tensors` are the inputs, both parts of the state, and the fields of `Weights`."""
        run = _run(cell, batch_sizes, tensors)
        saved = backend.empty_activations(cell, run.calls[0])
        ((outputs, final),) = backend.forward(run, [saved])
        ctx.save_for_backward(*tensors, *saved)
        ctx.backend, ctx.cell, ctx.batch_sizes = backend, cell, batch_sizes
        return outputs, *final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        tensors, num_saved = ctx.saved_tensors, len(SavedActivations._fields)
        run = _run(ctx.cell, ctx.batch_sizes, tensors[:-num_saved])
        saved = SavedActivations(*tensors[-num_saved:])
        ((inputs, weights, state, _),) = run.calls
        with torch.autocast(inputs.device.type, enabled=False):
            # Padded as products need it, so that they do not copy it.
            num_rows = padded_rows(len(inputs))
            d_gates = large_buffer(inputs, num_rows, saved.gates.size(1), inputs.dtype)
            d_gates[len(inputs) :] = 0.0
            d_projected = None
            if weights.projection is not None:
                d_projected = torch.empty_like(saved.hidden_states)
            outputs, final_hidden, final_cell = gradients
            d = Gradients(outputs, final_hidden, final_cell, d_gates[: len(inputs)], d_projected)
            d_state = ctx.backend.backward(run, saved, d)
            d_inputs = None
            if ctx.needs_input_grad[3]:
                through_inputs = PackedMatrix(weights.input.t().to(inputs.dtype))
                rows = d_gates[:, -weights.input.size(0) :]
                d_inputs = through_inputs.product(rows)[: len(inputs)]
            d_weights = _weight_gradients(run, saved, d_gates, d_projected)
        d_state = (None, None) if state is None else d_state
        return None, None, None, d_inputs, *d_state, *d_weights


def _run(cell: Cell, batch_sizes: List[int], tensors: Sequence[Any]) -> Run:
    inputs, hidden, cell_state, *weights = tensors
    state = None if hidden is None else RecurrentState(hidden, cell_state)
    return Run(cell, [LayerCall(inputs, Weights(*weights), state)], batch_sizes)


def _weight_gradients(
    run: Run, saved: SavedActivations, d_gates: torch.Tensor, d_projected: Optional[torch.Tensor]
) -> Weights:
    """The gradient of each weight, one product over all steps; `d_gates` has rows of padding."""
    ((inputs, weights, state, _),) = run.calls
    full, hidden_states = weights.bias.dtype, saved.hidden_states
    # Hidden states of the step before; the first step has none unless a state was given.
    first = hidden_states.new_zeros(run.num_sentences, weights.output_dim)
    parts = [first if state is None else state.hidden[: len(first)].to(inputs.dtype)]
    start = 0
    for size, next_size in zip(run.batch_sizes, run.batch_sizes[1:]):
        parts.append(hidden_states[start : start + next_size])
        start += size
    earlier = torch.cat(parts)
    d_projection = None
    if d_projected is not None:
        d_projection = transposed_product(d_projected, saved.cell_outputs).to(full)
    if onednn_compiles(d_gates) and len(weights.input) == len(weights.recurrent) == d_gates.size(1):
        # One product instead of three, which takes two thirds of their time.
        ones = inputs.new_ones(len(inputs), _ONES)
        joined = transposed_product(torch.cat([inputs, earlier, ones], dim=1), d_gates).to(full)
        d_input, d_recurrent, d_bias = joined.split([inputs.size(1), weights.output_dim, _ONES])
        return Weights(d_input.t(), d_recurrent.t(), d_bias[0], d_projection)
    return Weights(
        transposed_product(d_gates[:, -weights.input.size(0) :], inputs).to(full),
        transposed_product(d_gates[:, : weights.recurrent.size(0)], earlier).to(full),
        column_sums(d_gates).to(full),
        d_projection,
    )


def dense_copy(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return values.to(dtype, memory_format=torch.contiguous_format, copy=True)


def outputs_of(call: LayerCall, activations: Optional[SavedActivations]) -> torch.Tensor:
    """Where `forward` writes the hidden states: shape `(num_packed, output_dim)`."""
    if activations is not None:
        return activations.hidden_states
    return call.inputs.new_empty(len(call.inputs), call.weights.output_dim)


def pieces_of(
    batch_sizes: Sequence[int], most_tokens: int, most_steps: float = inf
) -> Iterator[Tuple[slice, List[Tuple[int, int]]]]:
    """
    Yields slices of tokens, and the first token and the number of sentences of each of their steps:
    one step, or several within these bounds.
    """
    begin = start = 0
    steps: List[Tuple[int, int]] = []
    for size in batch_sizes:
        if steps and (start + size - begin > most_tokens or len(steps) == most_steps):
            yield slice(begin, start), steps
            begin, steps = start, []
        steps.append((start, size))
        start += size
    if steps:
        yield slice(begin, start), steps


def large_buffer(like: torch.Tensor, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """
    An uninitialised tensor of shape `(rows, columns)` on the device of `like`. The system hands out
    memory page by page, which for 40 MB takes as long as a matrix product of that size. So on a CPU
    NumPy allocates it, which asks for large pages; PyTorch does not.
    """
    num_bytes = rows * columns * dtype.itemsize
    if like.device.type != "cpu" or num_bytes < tuning.LARGE_BUFFER:
        return torch.empty(rows, columns, dtype=dtype, device=like.device)
    # Aligned as PyTorch aligns its own tensors.
    buffer = torch.from_numpy(numpy.empty(num_bytes + 64, dtype=numpy.uint8))
    start = -buffer.data_ptr() % 64
    return buffer[start : start + num_bytes].view(dtype).view(rows, columns)
