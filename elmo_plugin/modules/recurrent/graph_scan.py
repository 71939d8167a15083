from math import inf
from typing import List, Optional, Sequence

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.gpu import has_triton
from elmo_plugin.modules.recurrent import step_graphs
from elmo_plugin.modules.recurrent.cells import Cell, LstmCell, Weights
from elmo_plugin.modules.recurrent.scan import (
    Backend,
    Gradients,
    LayerCall,
    RecurrentState,
    Result,
    Run,
    SavedActivations,
    outputs_of,
    pieces_of,
)
from elmo_plugin.modules.recurrent.step_graphs import (
    BackwardGraph,
    ForwardGraph,
    Shape,
    StepGraph,
    graph_of,
)

# Most numbers that fit into 16 bytes.
_ALIGNMENT = 8


class GraphScan(Backend):
    """
    Runs LSTMs as CUDA graphs of a few steps each. The four Triton kernels of a step take less time
    than to start them one by one. Tests run Triton's interpreter on a CPU.
    """

    device = "cuda"
    saves_product_type = True

    def can_run(self, run: Run, dtype: torch.dtype, has_gradients: bool) -> bool:
        weights = run.calls[0].weights
        device = weights.recurrent.device
        return (
            type(run.cell) is LstmCell
            and dtype in (torch.float32, torch.bfloat16, torch.float16)
            and weights.bias.dtype in (torch.float32, dtype)
            # Every row begins at a multiple of 16 bytes.
            and weights.hidden_dim(run.cell) % _ALIGNMENT == weights.output_dim % _ALIGNMENT == 0
            # The caller may capture a graph of its own.
            and not (device.type == "cuda" and torch.cuda.is_current_stream_capturing())
            and has_triton(device)
        )

    def forward(self, run: Run, saved: Optional[Sequence[SavedActivations]] = None) -> List[Result]:
        cell, calls, batch_sizes = run
        first, dtype = calls[0], calls[0].inputs.dtype
        rows = len(first.state.cell) if first.state is not None else max(batch_sizes, default=0)
        every_outputs = [
            outputs_of(call, saved[number] if saved else None) for number, call in enumerate(calls)
        ]
        with torch.cuda.device_of(first.inputs), step_graphs.LOCK:
            shape = _shape(cell, first.weights, dtype, len(calls), rows, saved is not None)
            graph = graph_of(ForwardGraph, shape)
            for layer, (_, weights, state, _) in enumerate(calls):
                _copy_weights(graph, layer, weights)
                graph.hidden[layer].zero_()
                graph.cell_state[layer].zero_()
                if state is not None:
                    graph.hidden[layer, :rows] = state.hidden
                    graph.cell_state[layer, :rows] = state.cell
            most = tuning.MAX_GPU_INPUT_GATES // first.weights.input.size(0)
            for tokens, schedule in pieces_of(batch_sizes, most, step_graphs.MAX_STEPS):
                # Kept alive until the steps that read them are queued on the device.
                products = [_input_products(call, tokens) for call in calls]
                addresses = []
                for number, (of_inputs, outputs) in enumerate(zip(products, every_outputs)):
                    # Kernels count tokens from the first one of the batch.
                    shift = tokens.start * of_inputs.stride(0) * of_inputs.element_size()
                    kept: Sequence[torch.Tensor] = saved[number][:3] if saved else ()
                    pointers = (part.data_ptr() for part in (outputs, *kept))
                    missing = (3 - len(kept)) * [0]
                    addresses.append([of_inputs.data_ptr() - shift, *pointers, *missing])
                graph.run(addresses, schedule)
            full = first.weights.bias.dtype
            finals = [
                RecurrentState(
                    graph.hidden[layer, :rows].clone(),
                    graph.cell_state[layer, :rows].to(full, copy=True),
                )
                for layer in range(len(calls))
            ]
            return list(zip(every_outputs, finals))

    def backward(self, run: Run, saved: SavedActivations, d: Gradients) -> RecurrentState:
        cell, ((_, weights, state, _),), batch_sizes = run
        dtype = d.gates.dtype
        d_outputs, d_hidden = _dense(d.outputs, dtype), _dense(d.hidden, dtype)
        rows = len(d_hidden)
        initial = torch.zeros_like(d.cell, dtype=torch.float32)
        if state is not None:
            initial = _dense(state.cell, torch.float32)
        tensors = (
            d_outputs, d_hidden, saved.hidden_states, d.projected,
            saved.gates, saved.cell_states, initial, d.gates,
        )  # fmt: skip
        addresses = [0 if part is None else part.data_ptr() for part in tensors]
        schedule, start = [], 0
        for number, size in enumerate(batch_sizes):
            before = start - batch_sizes[number - 1] if number else -1
            schedule.append([start, size, before, *batch_sizes[number + 1 : number + 2]])
            start += size
        if schedule:
            # No sentences come after the last step.
            schedule[-1].append(0)
        schedule.reverse()
        with torch.cuda.device_of(d.gates), step_graphs.LOCK:
            graph = graph_of(BackwardGraph, _shape(cell, weights, dtype, 1, rows, True))
            _copy_weights(graph, 0, weights)
            graph.d_cell_state[0, :rows] = d.cell
            for begin in range(0, len(schedule), step_graphs.MAX_STEPS):
                graph.run([addresses], schedule[begin : begin + step_graphs.MAX_STEPS])
            size = batch_sizes[0] if batch_sizes else 0
            return RecurrentState(
                torch.cat([graph.d_hidden[0, :size], d_hidden[size:]]),
                graph.d_cell_state[0, :rows].clone(),
            )


def _shape(
    cell: Cell, weights: Weights, dtype: torch.dtype, num_layers: int, rows: int, keeps: bool
) -> Shape:
    assert isinstance(cell, LstmCell)
    device, projects = weights.recurrent.device, weights.projection is not None
    # Rounded to this type, so that the backward pass recognises clipped values.
    bound = torch.tensor(cell.projection_clip or inf, dtype=dtype, device="cpu").item()
    return Shape(
        num_layers=num_layers,
        rows=_rounded(rows),
        dim=weights.hidden_dim(cell),
        output_dim=weights.output_dim,
        projects=projects,
        keeps=keeps,
        clip=cell.clip or inf,
        projection_clip=bound if projects else inf,
        dtype=dtype,
        precision=torch.get_float32_matmul_precision(),
        device=device,
        stream=torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0,
    )


def _rounded(rows: int) -> int:
    """The next of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 …, four to each power of two."""
    multiple = max(1, 1 << ((rows - 1).bit_length() - 3)) if rows > 8 else 1
    return -(-rows // multiple) * multiple


def _input_products(call: LayerCall, tokens: slice) -> torch.Tensor:
    inputs, weights = call.inputs[tokens], call.weights
    dtype = inputs.dtype
    return torch.addmm(weights.bias.to(dtype), inputs, weights.input.to(dtype).t())


def _dense(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Makes values contiguous, at an address that is a multiple of 16, as the kernels read them."""
    values = values.to(dtype).contiguous()
    return values.clone() if values.data_ptr() % 16 else values


def _copy_weights(graph: StepGraph, layer: int, weights: Weights) -> None:
    graph.recurrent[layer] = weights.recurrent
    if weights.projection is not None:
        graph.projection[layer] = weights.projection
