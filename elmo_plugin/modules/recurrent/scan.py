"""The steps of a recurrent layer over packed sentences, there and back, whatever its cell."""

from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch

from elmo_plugin.modules.linear.packed_matrix import PackedMatrix
from elmo_plugin.modules.recurrent.cell import Cell, stop_at_clip
from elmo_plugin.modules.recurrent.large_tensors import large_empty
from elmo_plugin.modules.recurrent.weights import Products, Weights

# Numbers of the gates that inputs fill in one product: enough for the product to run at full
# speed, few enough to stay in cache until their steps have read them (4 MB in float32).
_MAX_GATES = 1024 * 1024

# Output and memory at one step, longest sentence first.
State = Tuple[torch.Tensor, torch.Tensor]


class Trace(NamedTuple):
    """
    What the way back needs of all steps.

    # Parameters

    gates : `torch.Tensor`
        Shape `(num_packed, num_blocks * dim)`. As the cell left them.
    memories : `torch.Tensor`
        Shape `(num_packed, dim)`.
    squashed, outputs : `torch.Tensor`
        Shape `(num_packed, dim)` and `(num_packed, output_dim)`, in the type of the products:
        what the cell gave, before and after its projection; the same without one.
    """

    gates: torch.Tensor
    memories: torch.Tensor
    squashed: torch.Tensor
    outputs: torch.Tensor

    @classmethod
    def empty(cls, cell: Cell, inputs: torch.Tensor, weights: Weights) -> "Trace":
        """Uninitialised, in the types that `walk` wants."""
        num_packed, dim, full = len(inputs), weights.dim(cell), at_least_float32(inputs.dtype)
        outputs = inputs.new_empty(num_packed, weights.output_dim)
        return cls(
            large_empty(inputs, num_packed, cell.num_blocks * dim, full),
            large_empty(inputs, num_packed, dim, full),
            outputs if weights.projection is None else inputs.new_empty(num_packed, dim),
            outputs,
        )


def walk(
    cell: Cell,
    inputs: torch.Tensor,
    weights: Weights,
    batch_sizes: Sequence[int],
    state: Optional[State],
    products: Products,
    trace: Optional[Trace],
) -> Tuple[torch.Tensor, State]:
    """
    `recur` without a gradient. Fills `trace`; without one, memory beyond the outputs does not
    depend on the number of steps.
    """
    full, dim = at_least_float32(inputs.dtype), weights.dim(cell)
    batch_size = max(batch_sizes, default=0)
    outputs = trace.outputs if trace else inputs.new_empty(len(inputs), weights.output_dim)
    hidden, memory = state or (None, outputs.new_zeros(batch_size, dim, dtype=full))
    hidden = hidden if hidden is None else hidden.to(inputs.dtype)
    memory = memory.to(full).contiguous()
    squashed_now = outputs.new_empty(batch_size, dim)
    ended: List[State] = []
    for step, input_gates in _steps(inputs, batch_sizes, weights, products):
        size = len(input_gates)
        if len(memory) > size:
            # Copies: a slice would keep the memories of all sentences.
            ended.append((hidden[size:].clone(), memory[size:].clone()))
        recurrent = None
        if hidden is not None:
            recurrent = products.state(hidden[: _filled(size)])[:size]
        gates = trace.gates[step] if trace else None
        new_memory = trace.memories[step] if trace else torch.empty_like(memory[:size])
        hidden = squashed = outputs[step]
        if products.projection is not None:
            squashed = trace.squashed[step] if trace else squashed_now[:size]
        cell.forward(input_gates, recurrent, memory[:size], gates, new_memory, squashed)
        memory = new_memory
        if products.projection is not None:
            _project(cell, products, squashed, hidden)
    if hidden is None:
        hidden = outputs
    # Shorter sentences ended first but stand last.
    hiddens, memories = zip(*reversed([*ended, (hidden, memory)]))
    return outputs, (torch.cat(hiddens), torch.cat(memories).to(weights.bias.dtype))


def _project(cell: Cell, products: Products, squashed: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(products.projection(squashed))
    if cell.projection_clip:
        out.clamp_(-cell.projection_clip, cell.projection_clip)


def _steps(
    inputs: torch.Tensor, batch_sizes: Sequence[int], weights: Weights, products: Products
) -> Iterator[Tuple[slice, torch.Tensor]]:
    """Where each step stands, and what its inputs put into the gates."""
    start = 0
    for sizes in _chunks(batch_sizes, _MAX_GATES // weights.inputs.size(0)):
        # Shape: (num_packed of this chunk or a few more, num_blocks * dim)
        gates = products.inputs(inputs[start : start + _filled(sum(sizes))])
        first = start
        for size in sizes:
            step, start = slice(start, start + size), start + size
            yield step, gates[step.start - first : step.stop - first]


def walk_back(
    cell: Cell,
    weights: Weights,
    batch_sizes: List[int],
    state: Optional[State],
    trace: Trace,
    gradients: Tuple[torch.Tensor, ...],
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
) -> State:
    """
    From the gradients of outputs and last state. Fills `d_gates` and `d_projected`, those of what
    goes into the gates and of the projections before their clip; returns that of the first state.
    """
    full, dtype = trace.memories.dtype, d_gates.dtype
    d_outputs, d_hidden, d_memory = (gradient.to(full) for gradient in gradients)
    d_hidden, d_memory = _dense_copy(d_hidden), _dense_copy(d_memory)
    first_memory = torch.zeros_like(d_memory) if state is None else _dense_copy(state[1].to(full))
    through_state = PackedMatrix(weights.state.t().to(dtype))
    through_projection = None
    if d_projected is not None:
        through_projection = PackedMatrix(weights.projection.t().to(dtype))
    room = torch.empty_like(d_hidden)
    end = len(d_gates)
    for number in reversed(range(len(batch_sizes))):
        size = batch_sizes[number]
        step, end = slice(end - size, end), end - size
        before = end - batch_sizes[number - 1]
        previous = trace.memories[before : before + size] if number else first_memory[:size]
        d_output = torch.add(d_outputs[step], d_hidden[:size], out=room[:size])
        if through_projection is not None:
            stop_at_clip(d_output, trace.outputs[step], cell.projection_clip)
            d_projected[step] = d_output
            rows = d_projected[end : end + _filled(size)]
            d_output = through_projection.product(rows)[:size].to(full)
        of_step = (trace.gates[step], previous, trace.memories[step])
        cell.backward(*of_step, d_output, d_memory[:size], d_gates[step])
        if number or state is not None:
            rows = d_gates[end : end + _filled(size), : weights.state.size(0)]
            d_hidden[:size] = through_state.product(rows)[:size]
    return d_hidden, d_memory


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """What is computed in between products of this type."""
    return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def _dense_copy(values: torch.Tensor) -> torch.Tensor:
    return values.clone(memory_format=torch.contiguous_format)


def _filled(num_rows: int) -> int:
    """
    Rows to ask for when `num_rows` are wanted: a `PackedMatrix` need not copy what is already a
    multiple of this, and the rows that follow are there, of later steps or just ended sentences.
    """
    return -(-num_rows // 4) * 4


def _chunks(batch_sizes: Sequence[int], most: int) -> List[List[int]]:
    """Groups steps so that each group holds at most `most` tokens, or is one step."""
    chunks: List[List[int]] = []
    filled = most
    for size in batch_sizes:
        if filled + size > most:
            chunks.append([])
            filled = 0
        chunks[-1].append(size)
        filled += size
    return chunks
