"""The recurrence of a projected LSTM over packed sentences, with its own way back through time."""

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from elmo_plugin.layers import PackedMatrix


class Clips(NamedTuple):
    """Bounds on the cell and on its projection; `None` for no bound."""

    cell: Optional[float]
    projection: Optional[float]


class LstmRecurrence(torch.autograd.Function):
    """
    All steps of one direction of one layer, forward and backward.

    Truncated back-propagation by hand: the gradient of each weight is one product over all steps,
    and the matrices of the loop are laid out once per pass. Elementwise work is done step by step,
    while its operands are in cache.
    Under `torch.autocast` products are in its type and everything between them stays float32.

    A tanh is twice the sigmoid of twice its argument, less one; so the weights of the candidate
    are doubled and one sigmoid, several times as fast as a tanh, serves all four gates.

    Memory: `6 * dim + input_dim + output_dim` numbers per token are kept for the way back, and
    about as many again live on it.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        hidden: torch.Tensor,
        cell: torch.Tensor,
        input_weight: torch.Tensor,
        recurrent_weight: torch.Tensor,
        bias: torch.Tensor,
        projection_weight: Optional[torch.Tensor],
        batch_sizes: Sequence[int],
        clips: Clips,
    ) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_packed, input_dim)`.
        hidden, cell : `torch.Tensor`
            Shape `(batch_size, output_dim)` and `(batch_size, dim)`. State before the first step,
            longest sentence first.
        input_weight, recurrent_weight, bias : `torch.Tensor`
            Shape `(4 * dim, input_dim)`, `(4 * dim, output_dim)`, `(4 * dim,)`; gates in the
            order i, f, o, g.
        projection_weight : `Optional[torch.Tensor]`
            Shape `(output_dim, dim)`; without it the output is that of the cells.
        batch_sizes : `Sequence[int]`
            Number of sentences at each step, never growing.
        clips : `Clips`
            Bounds.

        # Returns

        `Tuple[torch.Tensor, torch.Tensor, torch.Tensor]`
            Outputs, shape `(num_packed, output_dim)`, and the hidden and cell states after each
            sentence's last token.
        """
        dim = cell.size(1)
        dtype = _product_dtype(inputs)
        scale = _candidate_scale(bias, dim)
        inputs = inputs.to(dtype)
        input_weight = (input_weight * scale.unsqueeze(1)).to(dtype)
        recurrent_weight = (recurrent_weight * scale.unsqueeze(1)).to(dtype)
        # Shape: (num_packed, 4 * dim)
        input_gates = linear(inputs, input_weight, (bias * scale).to(dtype))
        recurrent = PackedMatrix(recurrent_weight)
        projection = None
        if projection_weight is not None:
            projection_weight = projection_weight.to(dtype)
            projection = PackedMatrix(projection_weight)

        num_packed = len(inputs)
        gates = cell.new_empty(num_packed, 4 * dim)
        cells = cell.new_empty(num_packed, dim)
        squashed = inputs.new_empty(num_packed, dim)
        outputs = squashed
        if projection is not None:
            outputs = inputs.new_empty(num_packed, projection_weight.size(0))
        first_hidden, first_cell = hidden.to(dtype), cell
        hidden, cell = first_hidden, first_cell
        views = (view.split(list(batch_sizes)) for view in (input_gates, gates, cells, squashed))
        for size, step_inputs, step_gates, new_cell, step_squashed, output in zip(
            batch_sizes, *views, outputs.split(list(batch_sizes))
        ):
            step_gates.copy_(recurrent.product(hidden[:size], plus=step_inputs)).sigmoid_()
            i, f, o, g = step_gates.split(dim, dim=1)
            torch.mul(f, cell[:size], out=new_cell).addcmul_(i, g, value=2.0).sub_(i)
            if clips.cell:
                new_cell.clamp_(-clips.cell, clips.cell)
            tanh = torch.mul(new_cell, 2.0).sigmoid_().mul_(2.0).sub_(1.0)
            step_squashed.copy_(tanh.mul_(o))
            if projection is not None:
                projected = projection.product(step_squashed)
                if clips.projection:
                    projected.clamp_(-clips.projection, clips.projection)
                output.copy_(projected)
            hidden, cell = output, new_cell
        last = _last_rows(batch_sizes, inputs.device)
        ctx.save_for_backward(
            inputs, gates, cells, squashed, outputs, first_hidden, first_cell, scale,
            input_weight, recurrent_weight, projection_weight,
        )  # fmt: skip
        ctx.batch_sizes, ctx.clips = list(batch_sizes), clips
        return outputs, outputs[last], cells[last]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        """Gradients of the tensors that `forward` takes, from those of what it returns."""
        (
            inputs, gates, cells, squashed, outputs, first_hidden, first_cell, scale,
            input_weight, recurrent_weight, projection_weight,
        ) = ctx.saved_tensors  # fmt: skip
        d_gates = torch.empty_like(gates, dtype=inputs.dtype)
        d_projected = torch.empty_like(outputs) if projection_weight is not None else None
        d_hidden, d_cell = _through_time(
            d_gates, d_projected, gates, cells, first_cell, outputs, recurrent_weight,
            projection_weight, ctx.batch_sizes, ctx.clips, gradients,
        )  # fmt: skip
        d_inputs = d_gates @ input_weight
        d_input_weight = (d_gates.t() @ inputs).to(scale.dtype) * scale.unsqueeze(1)
        previous = _previous(outputs, first_hidden, ctx.batch_sizes)
        d_recurrent_weight = (d_gates.t() @ previous).to(scale.dtype) * scale.unsqueeze(1)
        d_bias = d_gates.sum(dim=0, dtype=scale.dtype) * scale
        d_projection_weight = None
        if d_projected is not None:
            d_projection_weight = (d_projected.t() @ squashed).to(scale.dtype)
        return (
            d_inputs, d_hidden, d_cell, d_input_weight, d_recurrent_weight, d_bias,
            d_projection_weight, None, None,
        )  # fmt: skip


def _through_time(
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
    gates: torch.Tensor,
    cells: torch.Tensor,
    first_cell: torch.Tensor,
    outputs: torch.Tensor,
    recurrent_weight: torch.Tensor,
    projection_weight: Optional[torch.Tensor],
    batch_sizes: List[int],
    clips: Clips,
    gradients: Tuple[torch.Tensor, ...],
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    Walks back through the steps and fills `d_gates` and `d_projected`, the gradients before the
    sigmoids and before the clip of the projections. Returns those of the first state.
    """
    d_outputs, d_hidden, d_cell = (gradient.to(cells.dtype) for gradient in gradients)
    d_hidden, d_cell = d_hidden.clone(), d_cell.clone()
    back_from_gates = PackedMatrix(recurrent_weight.t().contiguous())
    back_from_projection = None
    if projection_weight is not None:
        back_from_projection = PackedMatrix(projection_weight.t().contiguous())
    end = len(cells)
    for number in reversed(range(len(batch_sizes))):
        size = batch_sizes[number]
        step = slice(end - size, end)
        end -= size
        before = end - batch_sizes[number - 1]
        previous_cell = cells[before : before + size] if number else first_cell[:size]
        d_squashed = d_outputs[step] + d_hidden[:size]
        if back_from_projection is not None:
            if clips.projection:
                d_squashed.mul_(outputs[step].abs() < clips.projection)
            d_squashed = back_from_projection.product(d_projected[step].copy_(d_squashed))
            d_squashed = d_squashed.to(cells.dtype)
        d_now = d_cell[:size]
        d_gates[step] = _within_step(
            gates[step], cells[step], previous_cell, d_squashed, d_now, clips.cell
        )
        d_hidden[:size] = back_from_gates.product(d_gates[step])
    return d_hidden, d_cell


def _within_step(
    gates: torch.Tensor,
    cell: torch.Tensor,
    previous_cell: torch.Tensor,
    d_squashed: torch.Tensor,
    d_cell: torch.Tensor,
    clip: Optional[float],
) -> torch.Tensor:
    """
    Gradient before the sigmoids of one step, from those of `squashed = o * tanh(cell)` and of the
    cell; the latter is turned in place into that of the previous cell.
    """
    i, f, o, g = gates.chunk(4, dim=1)
    d_gates = torch.addcmul(gates, gates, gates, value=-1.0)
    d_i, d_f, d_o, d_g = d_gates.chunk(4, dim=1)
    tanh = torch.mul(cell, 2.0).sigmoid_().mul_(2.0).sub_(1.0)
    d_o.mul_(tanh).mul_(d_squashed)
    through = torch.addcmul(torch.ones_like(tanh), tanh, tanh, value=-1.0).mul_(o)
    d_cell.addcmul_(d_squashed, through)
    if clip:
        d_cell.mul_(cell.abs() < clip)
    d_i.mul_(torch.mul(g, 2.0).sub_(1.0)).mul_(d_cell)
    d_f.mul_(previous_cell).mul_(d_cell)
    d_g.mul_(i).mul_(torch.mul(d_cell, 2.0))
    d_cell.mul_(f)
    return d_gates


def _previous(
    values: torch.Tensor, first: torch.Tensor, batch_sizes: Sequence[int]
) -> torch.Tensor:
    """What stood one step earlier in the same sentence."""
    parts = [first[: batch_sizes[0]]]
    start = 0
    for size, next_size in zip(batch_sizes, batch_sizes[1:]):
        parts.append(values[start : start + next_size])
        start += size
    return torch.cat(parts)


def _last_rows(batch_sizes: Sequence[int], device: torch.device) -> torch.Tensor:
    """Shape `(batch_size,)`: where each sentence's last token stands."""
    rows: List[int] = []
    start = sum(batch_sizes)
    # Shorter sentences end first but stand last: from the end, longer ones come first.
    for size in reversed(batch_sizes):
        start -= size
        rows.extend(range(start + len(rows), start + size))
    return torch.tensor(rows, device=device)


def _candidate_scale(bias: torch.Tensor, dim: int) -> torch.Tensor:
    scale = torch.ones_like(bias)
    scale[3 * dim :] = 2.0
    return scale


def _product_dtype(inputs: torch.Tensor) -> torch.dtype:
    device = inputs.device.type
    if torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return inputs.dtype
