"""Recurrent layers over packed sentences, with one way back through time for every cell."""

from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_plugin.modules.linear.packed_matrix import PackedMatrix
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.kernels.fused_cells import fused
from elmo_plugin.modules.recurrent.large_tensors import large_empty
from elmo_plugin.modules.recurrent.reference import plain_recurrence
from elmo_plugin.modules.recurrent.scan import State, Trace, walk, walk_back
from elmo_plugin.modules.recurrent.weights import Products, Weights


def recur(
    cell: Cell,
    inputs: torch.Tensor,
    weights: Weights,
    batch_sizes: Sequence[int],
    state: Optional[State] = None,
    products: Optional[Products] = None,
) -> Tuple[torch.Tensor, State]:
    """
    All steps of one direction of one recurrent layer.

    Under `torch.autocast` products are in its type; what lies between them is never computed in
    less than float32, so that memories do not drift over a long sentence. If something learns,
    about `(num_blocks + 2) * dim` numbers per token are kept for the way back, and as many again
    live on it; otherwise only what is returned grows with the number of tokens.

    # Parameters

    cell : `Cell`
        What happens within a step.
    inputs : `torch.Tensor`
        Shape `(num_packed, input_dim)`. Tokens in the order of a `Packing`.
    weights : `Weights`
        What learns.
    batch_sizes : `Sequence[int]`
        Number of sentences at each step, never growing.
    state : `Optional[State]`
        Output and memory before the first step, longest sentence first: shapes
        `(batch_size, output_dim)` and `(batch_size, dim)`. Zeros when not given.
    products : `Optional[Products]`
        The products with `weights`, where the caller has them ready for when nothing learns.

    # Returns

    outputs : `torch.Tensor`
        Shape `(num_packed, output_dim)`.
    state : `State`
        Output and memory after each sentence's last token.
    """
    # Elsewhere nothing was ever tried: let autograd record the formulas.
    if inputs.device.type not in ("cpu", "cuda"):
        return plain_recurrence(cell, inputs, weights, batch_sizes, state)
    dtype = _product_dtype(weights)
    if state is None and weights.state_bias is not None:
        # There is a recurrence before the first step already: its bias.
        rows = max(batch_sizes, default=0)
        state = (
            weights.bias.new_zeros(rows, weights.output_dim),
            weights.bias.new_zeros(rows, weights.dim(cell)),
        )
    _check_fit(cell, inputs, weights, batch_sizes, state)
    cell = fused(cell, inputs.device, dtype, weights.dim(cell), max(batch_sizes, default=0))
    if learns(inputs, *(state or ()), *weights):
        hidden, memory = state or (None, None)
        outputs, hidden, memory = _Recurrence.apply(
            cell, list(batch_sizes), inputs, hidden, memory, *weights
        )
        return outputs, (hidden, memory)
    with torch.autocast(inputs.device.type, enabled=False):
        if products is None or dtype != weights.bias.dtype:
            products = weights.products(dtype)
        return walk(cell, inputs.to(dtype), weights, batch_sizes, state, products, None)


def _check_fit(
    cell: Cell,
    inputs: torch.Tensor,
    weights: Weights,
    batch_sizes: Sequence[int],
    state: Optional[State],
) -> None:
    """What is compiled looks at no shape."""
    dim, sizes = weights.dim(cell), list(batch_sizes)
    assert sum(sizes) == len(inputs) and sizes == sorted(sizes, reverse=True), sizes
    assert weights.state.size(0) == cell.num_state_blocks * dim, weights.state.shape
    assert weights.inputs.size(0) == cell.num_input_blocks * dim, weights.inputs.shape
    assert weights.bias.numel() == cell.num_blocks * dim, weights.bias.shape
    for part, width in zip(state or (), (weights.output_dim, dim)):
        assert len(part) >= max(sizes, default=0) and part.size(1) == width, part.shape


def learns(*tensors: Optional[torch.Tensor]) -> bool:
    """Whether what is computed from these has a way back."""
    return torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in tensors
    )


class _Recurrence(torch.autograd.Function):
    """
    The steps with their own way back. Recorded by autograd, the gradient of each weight would be
    one product per step; here it is one product over all steps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        batch_sizes: List[int],
        inputs: torch.Tensor,
        hidden: Optional[torch.Tensor],
        memory: Optional[torch.Tensor],
        *parts: Optional[torch.Tensor],
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """`parts` are those of the `Weights`."""
        weights = Weights(*parts)
        dtype = _product_dtype(weights)
        state = None if hidden is None else (hidden, memory)
        with torch.autocast(inputs.device.type, enabled=False):
            inputs = inputs.to(dtype)
            trace, products = Trace.empty(cell, inputs, weights), weights.products(dtype)
            outputs, final = walk(cell, inputs, weights, batch_sizes, state, products, trace)
        ctx.save_for_backward(inputs, hidden, memory, *parts, *trace)
        ctx.cell, ctx.batch_sizes = cell, batch_sizes
        return outputs, *final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """Gradients of the tensors that `forward` takes, from those of what it returns."""
        inputs, hidden, memory, *saved = ctx.saved_tensors
        weights, trace = Weights(*saved[:4]), Trace(*saved[4:])
        state = None if hidden is None else (hidden, memory)
        with torch.autocast(inputs.device.type, enabled=False):
            # A few rows more, so that products need not copy it to fill them up.
            room = large_empty(inputs, len(inputs) + 3, trace.gates.size(1), inputs.dtype)
            room[len(inputs) :] = 0.0
            d_gates = room[: len(inputs)]
            d_projected = None if weights.projection is None else torch.empty_like(trace.outputs)
            d_state = walk_back(
                ctx.cell, weights, ctx.batch_sizes, state, trace, gradients, d_gates, d_projected
            )
            d_inputs = None
            if ctx.needs_input_grad[2]:
                through_inputs = PackedMatrix(weights.inputs.t().to(inputs.dtype))
                rows = room[: len(room) // 4 * 4, -weights.inputs.size(0) :]
                d_inputs = through_inputs.product(rows)[: len(inputs)]
            d_weights = _weight_gradients(
                weights, ctx.batch_sizes, inputs, hidden, trace, d_gates, d_projected
            )
        return None, None, d_inputs, *((None, None) if state is None else d_state), *d_weights


def _weight_gradients(
    weights: Weights,
    batch_sizes: List[int],
    inputs: torch.Tensor,
    hidden: Optional[torch.Tensor],
    trace: Trace,
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
) -> Weights:
    """Each is one product over all steps."""
    full = weights.bias.dtype
    # Outputs one step earlier, which the first step has none of unless a state was given.
    first_size = max(batch_sizes, default=0)
    earlier = [trace.outputs[:0] if hidden is None else hidden[:first_size].to(inputs.dtype)]
    start = 0
    for size, next_size in zip(batch_sizes, batch_sizes[1:]):
        earlier.append(trace.outputs[start : start + next_size])
        start += size
    first = first_size if hidden is None else 0
    d_state_gates = d_gates[first:, : weights.state.size(0)]
    d_input_gates = d_gates[:, -weights.inputs.size(0) :]
    return Weights(
        _transposed_product(d_input_gates, inputs).to(full),
        _transposed_product(d_state_gates, torch.cat(earlier)).to(full),
        _column_sums(d_gates).to(full),
        None if d_projected is None else _transposed_product(d_projected, trace.squashed).to(full),
    )


def _transposed_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """`left.t() @ right`, the way round that is faster on a CPU."""
    if left.size(1) > right.size(1):
        return (right.t() @ left).t()
    return left.t() @ right


def _column_sums(values: torch.Tensor) -> torch.Tensor:
    # A sum would be rounded at each step or copy all halves to float32; a product does neither.
    if values.dtype in (torch.bfloat16, torch.float16):
        return (values.new_ones(1, len(values)) @ values).squeeze(0)
    return values.sum(dim=0)


def _product_dtype(weights: Weights) -> torch.dtype:
    device = weights.bias.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return weights.bias.dtype
