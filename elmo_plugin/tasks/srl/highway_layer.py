"""One highway LSTM layer over packed sentences, with a hand-written way back through time."""

from typing import Any, List, NamedTuple, Optional, Tuple

import torch
from torch.autograd.function import once_differentiable

from elmo_plugin.layers.packing import Packing

# Every weight holds its blocks in this order, so that the gates through which the memory reaches a
# gradient (the first three), those through which the output does (the last three) and those with
# a sigmoid (all between memory and carry) each lie side by side. The carry takes no recurrence.
BLOCKS = ("candidate", "input_gate", "forget_gate", "output_gate", "highway_gate", "carry")
NUM_GATES = len(BLOCKS) - 1


class AlternatingPacking(NamedTuple):
    """
    Where the real tokens of a batch lie in a stack whose layers alternate direction.

    The steps are those of `elmo_plugin.layers.packing.Packing`. Read from its last token a sentence
    fills the same steps, so that one packing serves both directions and all that happens between
    two layers is that each sentence is turned around.

    # Parameters

    batch_sizes : `List[int]`
        Number of sentences at each step.
    positions : `torch.Tensor`
        Shape `(num_packed,)`; place of each packed token in the padded batch, flattened.
    reversal : `torch.Tensor`
        Shape `(num_packed,)`; which packed token stands at each place once every sentence has been
        turned around. Its own inverse.
    predecessors : `torch.Tensor`
        Shape `(num_packed - batch_sizes[0],)`; for each packed token after the first step, the
        token of the same sentence one step earlier.
    """

    batch_sizes: List[int]
    positions: torch.Tensor
    reversal: torch.Tensor
    predecessors: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor) -> "AlternatingPacking":
        """
        # Parameters

        mask : `torch.BoolTensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Rows may be empty.
        """
        assert not bool((mask[:, 1:] & ~mask[:, :-1]).any()), "padding stands before a token"
        packing = Packing.from_lengths(mask.sum(dim=1), mask.size(1))
        places = torch.arange(len(packing.forward_index), device=mask.device)
        place_of = places.new_empty(mask.numel())
        place_of[packing.forward_index] = places
        sizes = places.new_tensor(packing.batch_sizes)
        later = places[sum(packing.batch_sizes[:1]) :]
        return cls(
            packing.batch_sizes,
            packing.forward_index,
            place_of[packing.backward_index],
            later - sizes[:-1].repeat_interleave(sizes[1:]),
        )


def recur(
    blocks: torch.Tensor,
    state_weight: torch.Tensor,
    dropout_mask: Optional[torch.Tensor],
    batch_sizes: List[int],
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    The recurrence of one layer: equations 1 to 8 of He et al. (2017), from the left.

    # Parameters

    blocks : `torch.Tensor`
        Shape `(num_packed, 6 * hidden_size)`; what the inputs add to each block. Turned in place
        into the values of the gates.
    state_weight : `torch.Tensor`
        Shape `(5 * hidden_size, hidden_size)`.
    dropout_mask : `torch.Tensor`, optional
        Shape `(batch_size, hidden_size)`, longest sentence first; one mask for all steps.
    batch_sizes : `List[int]`
        See `AlternatingPacking`.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        Memories and outputs, each of shape `(num_packed, hidden_size)`.
    """
    hidden_size = state_weight.size(1)
    memories, outputs = blocks.new_empty(2, len(blocks), hidden_size)
    gates = blocks[:, : NUM_GATES * hidden_size]
    views = (gates, gates[:, hidden_size:], *blocks.split(hidden_size, dim=1), memories, outputs)
    previous_memory = previous = blocks.new_zeros(max(batch_sizes, default=0), hidden_size)
    for gates, sigmoids, g, i, f, o, r, carry, memory, output in zip(
        *(view.split(batch_sizes) for view in views)
    ):
        running = len(output)
        gates.addmm_(previous[:running], state_weight.t())
        g.tanh_()
        sigmoids.sigmoid_()
        torch.mul(f, previous_memory[:running], out=memory).addcmul_(i, g)
        torch.tanh(memory, out=output).mul_(o)
        torch.lerp(carry, output, r, out=output)
        if dropout_mask is not None:
            output.mul_(dropout_mask[:running])
        previous_memory, previous = memory, output
    return memories, outputs


def local_derivatives(
    blocks: torch.Tensor, memories: torch.Tensor, predecessors: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    """
    What each block changes within its own step, before its nonlinearity and for all steps at once:
    the first three blocks change the memory, the last three the output.

    # Parameters

    blocks : `torch.Tensor`
        Shape `(num_packed, 6 * hidden_size)`, as `recur` left them.
    memories : `torch.Tensor`
        Shape `(num_packed, hidden_size)`.
    predecessors : `torch.Tensor`
        See `AlternatingPacking`.
    out : `torch.Tensor`
        Shape `(num_packed, 6, hidden_size)`; receives the derivatives with respect to the blocks.

    # Returns

    `torch.Tensor`
        Shape `(num_packed, hidden_size)`; the derivative of the output with respect to the memory.
    """
    num_packed, hidden_size = memories.shape
    g, i, _, o, r, carry = blocks.split(hidden_size, dim=1)
    d_g, d_i, d_f, d_o, d_r, d_carry = out.unbind(dim=1)
    squashed = torch.tanh(memories)
    # Shape: (num_packed, 4, hidden_size)
    sigmoids = blocks.view_as(out)[:, 1:NUM_GATES]
    torch.addcmul(sigmoids, sigmoids, sigmoids, value=-1, out=out[:, 1:NUM_GATES])
    torch.addcmul(i, i * g, g, value=-1, out=d_g)
    d_i.mul_(g)
    num_first = num_packed - len(predecessors)
    d_f[:num_first] = 0
    d_f[num_first:].mul_(memories.index_select(0, predecessors))
    d_o.mul_(squashed).mul_(r)
    d_r.mul_((o * squashed).sub_(carry))
    torch.sub(1, r, out=d_carry)
    return squashed.square_().neg_().add_(1).mul_(o).mul_(r)


def recur_back(
    derivatives: torch.Tensor,
    output_by_memory: torch.Tensor,
    forget_gates: torch.Tensor,
    gradient: torch.Tensor,
    state_weight: torch.Tensor,
    dropout_mask: Optional[torch.Tensor],
    batch_sizes: List[int],
) -> None:
    """
    Back-propagation through time. Turns `derivatives` and `output_by_memory`, which come from
    `local_derivatives`, into gradients: `derivatives` becomes that of the blocks, in place.
    `gradient`, of shape `(num_packed, hidden_size)` like the outputs, is overwritten.
    """
    hidden_size = state_weight.size(1)
    gates = derivatives.flatten(start_dim=1)[:, : NUM_GATES * hidden_size]
    of_memory, of_output = derivatives.split(3, dim=1)
    views = (of_memory, of_output, gates, output_by_memory, forget_gates, gradient)
    steps = list(zip(*(view.split(batch_sizes) for view in views)))
    d_memories = gradient.new_zeros(max(batch_sizes, default=0), hidden_size)
    d_next_gates = gradient.new_zeros(0, NUM_GATES * hidden_size)
    for of_memory, of_output, d_gates, by_memory, f, d_output in reversed(steps):
        running = len(d_output)
        d_output[: len(d_next_gates)].addmm_(d_next_gates, state_weight)
        if dropout_mask is not None:
            d_output.mul_(dropout_mask[:running])
        of_output.mul_(d_output.unsqueeze(1))
        d_memory = d_memories[:running].addcmul_(d_output, by_memory)
        of_memory.mul_(d_memory.unsqueeze(1))
        d_memory.mul_(f)
        d_next_gates = d_gates


class HighwayLayer(torch.autograd.Function):
    """
    One layer over packed tokens, with its own way back.

    Recorded step by step, autograd would multiply each weight's gradient once per step and keep
    every intermediate value; here the gradient of a weight is one product over all steps.

    The arguments of `apply` are inputs `(num_packed, input_size)`, input weight
    `(6 * hidden_size, input_size)`, state weight `(5 * hidden_size, hidden_size)`, bias
    `(5 * hidden_size,)`, an optional dropout mask `(batch_size, hidden_size)` with the longest
    sentence first, the
    `AlternatingPacking`, and a scratch `(num_packed, 6, hidden_size)`. The scratch is
    where the way back works; the layers of a stack go back one after the other and share it,
    because touching fresh memory costs as much as a matrix product.
    """

    @staticmethod
    def forward(
        ctx: Any,
        inputs: torch.Tensor,
        input_weight: torch.Tensor,
        state_weight: torch.Tensor,
        bias: torch.Tensor,
        dropout_mask: Optional[torch.Tensor],
        packing: AlternatingPacking,
        scratch: torch.Tensor,
    ) -> torch.Tensor:
        bias = torch.nn.functional.pad(bias, (0, state_weight.size(1)))
        # Shape: (num_packed, 6 * hidden_size)
        blocks = torch.addmm(bias, inputs, input_weight.t())
        memories, outputs = recur(blocks, state_weight, dropout_mask, packing.batch_sizes)
        ctx.save_for_backward(
            inputs, input_weight, state_weight, dropout_mask, blocks, memories, outputs
        )
        ctx.packing, ctx.scratch = packing, scratch
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        with torch.autocast(gradient.device.type, enabled=False):
            return HighwayLayer._backward(ctx, gradient)

    @staticmethod
    def _backward(ctx: Any, gradient: torch.Tensor) -> Tuple[Optional[torch.Tensor], ...]:
        inputs, input_weight, state_weight, dropout_mask, blocks, memories, outputs = (
            ctx.saved_tensors
        )
        packing, derivatives, hidden_size = ctx.packing, ctx.scratch, state_weight.size(1)
        recur_back(
            derivatives,
            local_derivatives(blocks, memories, packing.predecessors, out=derivatives),
            blocks.split(hidden_size, dim=1)[BLOCKS.index("forget_gate")],
            gradient.clone(memory_format=torch.contiguous_format),
            state_weight,
            dropout_mask,
            packing.batch_sizes,
        )
        # Shape: (num_packed, 6 * hidden_size)
        d_blocks = derivatives.flatten(start_dim=1)
        d_gates = d_blocks[:, : NUM_GATES * hidden_size]
        num_first = len(d_gates) - len(packing.predecessors)
        previous = outputs.index_select(0, packing.predecessors)
        d_inputs = d_blocks @ input_weight if ctx.needs_input_grad[0] else None
        d_state_weight = d_gates[num_first:].t() @ previous
        return d_inputs, d_blocks.t() @ inputs, d_state_weight, d_gates.sum(dim=0), None, None, None
