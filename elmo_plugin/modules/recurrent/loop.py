from itertools import repeat
from typing import Any, Iterator, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import call_kernel, compiled_kernels
from elmo_plugin.modules.packed_linear import PackedMatrix, padded_rows
from elmo_plugin.modules.recurrent.cells import Weights
from elmo_plugin.modules.recurrent.scan import (
    Backend,
    Gradients,
    LayerCall,
    RecurrentState,
    Result,
    Run,
    SavedActivations,
    dense_copy,
    outputs_of,
    pieces_of,
)


class Loop(Backend):
    """Runs the steps one by one, for any cell, type and device. Cells are in float32 at least."""

    def forward(self, run: Run, saved: Optional[Sequence[SavedActivations]] = None) -> List[Result]:
        return [_forward(run, *each) for each in zip(run.calls, saved or repeat(None))]

    def backward(self, run: Run, saved: SavedActivations, d: Gradients) -> RecurrentState:
        cell, ((_, weights, state, _),), batch_sizes = run
        full, dtype = saved.cell_states.dtype, d.gates.dtype
        d_outputs = d.outputs.to(full)
        d_hidden, d_cell = dense_copy(d.hidden, full), dense_copy(d.cell, full)
        initial = torch.zeros_like(d_cell) if state is None else dense_copy(state.cell, full)
        through_recurrent = PackedMatrix(weights.recurrent.t().to(dtype))
        through_projection = None
        if weights.projection is not None:
            through_projection = PackedMatrix(weights.projection.t().to(dtype))
        buffer = torch.empty_like(d_hidden)
        cell_step = CellStep(run, d.gates)
        end = len(d.gates)
        for number in reversed(range(len(batch_sizes))):
            size = batch_sizes[number]
            step, end = slice(end - size, end), end - size
            before = end - batch_sizes[number - 1]
            previous = saved.cell_states[before : before + size] if number else initial[:size]
            d_output = torch.add(d_outputs[step], d_hidden[:size], out=buffer[:size])
            if through_projection is not None and d.projected is not None:
                if cell.projection_clip:
                    # `clamp` stops the gradient; compared in the type to which it has rounded.
                    d_output.mul_(saved.hidden_states[step].abs() < cell.projection_clip)
                d.projected[step] = d_output
                rows = d.projected[end : end + padded_rows(size)]
                d_output = through_projection.product(rows)[:size].to(full)
            of_step = (saved.gates[step], previous, saved.cell_states[step])
            cell_step.backward(*of_step, d_output, d_cell[:size], d.gates[step])
            if number or state is not None:
                rows = d.gates[end : end + padded_rows(size), : weights.recurrent.size(0)]
                d_hidden[:size] = through_recurrent.product(rows)[:size]
        return RecurrentState(d_hidden, d_cell)


def _forward(run: Run, call: LayerCall, saved: Optional[SavedActivations]) -> Result:
    cell, (inputs, weights, state, _), batch_size = run.cell, call, run.num_sentences
    full = torch.promote_types(inputs.dtype, torch.float32)
    dim, cell_step = weights.hidden_dim(cell), CellStep(run, inputs)
    through_input, through_recurrent, projection = _matrices(call)
    bias, outputs = weights.recurrent_bias, outputs_of(call, saved)
    bias = None if bias is None else bias.to(inputs.dtype)
    hidden, cell_state = state or (None, outputs.new_zeros(batch_size, dim, dtype=full))
    hidden = None if hidden is None else hidden.to(inputs.dtype)
    cell_state = cell_state.to(full).contiguous()
    buffer = outputs.new_empty(batch_size, dim)
    ended: List[Tuple[torch.Tensor, torch.Tensor]] = []
    for step, input_gates in _steps(inputs, run.batch_sizes, weights, through_input):
        size = len(input_gates)
        if len(cell_state) > size:
            # Copies: a slice would keep the states of all sentences alive.
            assert hidden is not None
            ended.append((hidden[size:].clone(), cell_state[size:].clone()))
        if hidden is None:
            # The product with a state of zeros.
            recurrent = input_gates.new_zeros(size, weights.recurrent.size(0))
            if bias is not None:
                recurrent += bias
        else:
            # Rows of ended sentences serve as padding, so that the product need not pad.
            recurrent = through_recurrent.product(hidden[: padded_rows(size)], bias)[:size]
        hidden = cell_output = outputs[step]
        gates = saved.gates[step] if saved else None
        new_cell_state = saved.cell_states[step] if saved else torch.empty_like(cell_state[:size])
        if projection is not None:
            cell_output = saved.cell_outputs[step] if saved else buffer[:size]
        previous = cell_state[:size]
        cell_step.forward(input_gates, recurrent, previous, gates, new_cell_state, cell_output)
        cell_state = new_cell_state
        if projection is not None:
            hidden.copy_(projection.product(cell_output))
            if cell.projection_clip:
                hidden.clamp_(-cell.projection_clip, cell.projection_clip)
    ended.append((outputs if hidden is None else hidden, cell_state))
    # Shorter sentences ended first but come last.
    final_hidden, final_cell = (torch.cat(parts) for parts in zip(*reversed(ended)))
    return outputs, RecurrentState(final_hidden, final_cell.to(weights.bias.dtype))


def _matrices(call: LayerCall) -> List[Any]:
    """The packed matrices in the type of the inputs; the layers' own ones if that is their type."""
    dtype, weights = call.inputs.dtype, call.weights
    if call.layers is not None and dtype == weights.bias.dtype:
        return [layer and layer.packed() for layer in call.layers]
    matrices = weights.input, weights.recurrent, weights.projection
    return [None if each is None else PackedMatrix(each.to(dtype)) for each in matrices]


def _steps(
    inputs: torch.Tensor, batch_sizes: Sequence[int], weights: Weights, matrix: PackedMatrix
) -> Iterator[Tuple[slice, torch.Tensor]]:
    """Yields each step's rows and the products of its inputs, made for several steps at once."""
    bias = weights.input_bias.to(inputs.dtype)
    most = tuning.MAX_INPUT_GATES // weights.input.size(0)
    for tokens, steps in pieces_of(batch_sizes, most):
        first, end = tokens.start, tokens.start + padded_rows(tokens.stop - tokens.start)
        # Shape: (num_packed of this piece or a few more, num_input_gates * hidden_dim)
        gates = matrix.product(inputs[first:end], bias)
        for start, size in steps:
            yield slice(start, start + size), gates[start - first : start - first + size]


class CellStep:
    """
    One time step of a cell: by its kernel for products in bfloat16 on a CPU, else by its formula,
    which autograd differentiates.

    All tensors are contiguous and of shape `(num_sentences, …)`. `gates` and `d_gates` hold all
    gates, `inputs` and `recurrent` the products with the inputs and the previous hidden state.
    `previous` is the cell state of the step before. Products and their inputs (`inputs`,
    `recurrent`, `output`, `d_gates`) may be in bfloat16 while everything else is in float32.
    """

    def __init__(self, run: Run, products: torch.Tensor) -> None:
        self._cell = run.cell
        self.has_kernel = (
            run.cell.kernel is not None
            and (products.device.type, products.dtype) == ("cpu", torch.bfloat16)
            and compiled_kernels() is not None
        )
        if self.has_kernel:
            dim = run.calls[0].weights.hidden_dim(run.cell)
            self._setting = run.cell.kernel_setting(run.num_sentences, dim)

    def forward(
        self,
        inputs: torch.Tensor,
        recurrent: torch.Tensor,
        previous: torch.Tensor,
        gates: Optional[torch.Tensor],
        cell_state: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """Fills `cell_state`, `output` and, if given, `gates` with what `backward` needs."""
        if self.has_kernel:
            self._call("forward", inputs, recurrent, previous, gates, cell_state, output)
            return
        if gates is None:
            gates = previous.new_empty(len(previous), len(self._cell.gates) * previous.size(1))
        first_input = gates.size(1) - inputs.size(1)
        gates[:, :first_input] = 0.0
        gates[:, first_input:] = inputs
        gates[:, : recurrent.size(1)] += recurrent
        new_cell_state, new_output = self._cell.formula(gates, previous)
        cell_state.copy_(new_cell_state)
        output.copy_(new_output)

    def backward(
        self,
        gates: torch.Tensor,
        previous: torch.Tensor,
        cell_state: torch.Tensor,
        d_output: torch.Tensor,
        d_cell_state: torch.Tensor,
        d_gates: torch.Tensor,
    ) -> None:
        """Fills `d_gates`; makes `d_cell_state` the previous state's. May overwrite `d_output`."""
        if self.has_kernel:
            states = previous, cell_state
            self._call("backward", gates, *states, d_output, d_cell_state, d_gates)
            return
        arguments: List[torch.Tensor] = [gates.detach(), previous.detach()]
        with torch.enable_grad():
            for argument in arguments:
                argument.requires_grad_()
            results = self._cell.formula(*arguments)
        gradients = torch.autograd.grad(results, arguments, (d_cell_state, d_output))
        d_gates.copy_(gradients[0])
        d_cell_state.copy_(gradients[1])

    def _call(self, name: str, *tensors: Optional[torch.Tensor]) -> None:
        assert tensors[2] is not None
        num_sentences, hidden_dim = tensors[2].shape
        for tensor in tensors:
            assert tensor is None or tensor.is_contiguous(), tensor.stride()
        kernel = f"{self._cell.kernel}_{name}"
        call_kernel(kernel, num_sentences, hidden_dim, self._setting, *tensors)
