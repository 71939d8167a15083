"""
All steps of LSTM layers on a GPU: CUDA graphs of a few steps each, replayed until all are done.

A step is four kernels, which take less time than to start them one by one. A graph is captured
once for each number of sentences (rounded up), widths and type, and is then used for every layer
and length: its kernels read from device memory which step they compute (`kernels/lstm_steps.py`),
and weights are copied to where it reads them.
"""

from collections import OrderedDict
from math import inf
from threading import Lock
from typing import Any, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Type

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import has_triton
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.cells.lstm import LstmCell
from elmo_plugin.modules.recurrent.compiled_scan import LayerCall
from elmo_plugin.modules.recurrent.scan import RecurrentState, SavedActivations
from elmo_plugin.modules.recurrent.weights import Weights

# Steps of one graph, and the largest number of steps between two transfers of a schedule.
_STEPS, _MAX_STEPS = 4, 2048
_BLOCK = 1024
# Where kernels run; for tests with Triton's interpreter, a CPU.
_DEVICE = "cuda"
# Numbers in 16 bytes, at most.
_ALIGNED = 8


def can_capture(cell: Cell, weights: Weights, dtype: torch.dtype) -> bool:
    """True if the steps of this cell, with products in `dtype`, can be CUDA graphs."""
    return (
        weights.recurrent.device.type == _DEVICE
        and type(cell) is LstmCell
        and dtype in (torch.float32, torch.bfloat16, torch.float16)
        and weights.bias.dtype in (torch.float32, dtype)
        # Every row begins at a multiple of 16 bytes.
        and weights.hidden_dim(cell) % _ALIGNED == weights.output_dim % _ALIGNED == 0
        and has_triton()
    )


class _Shape(NamedTuple):
    """What a graph is captured for."""

    num_layers: int
    rows: int
    dim: int
    output_dim: int
    projects: bool
    keeps: bool
    clip: float
    projection_clip: float
    dtype: torch.dtype
    device: torch.device
    stream: int


class _Graph:
    """
    The launches of `_STEPS` steps of layers that do not depend on each other, and their buffers.

    # Parameters

    shape : `_Shape`
    """

    num_columns: int
    num_addresses: int

    def __init__(self, shape: _Shape) -> None:
        # Not at the top: the module imports Triton, which an installation without GPU may lack.
        from elmo_plugin.modules.kernels import lstm_steps

        self.kernels = lstm_steps
        self.shape = shape
        num_addresses = shape.num_layers * self.num_addresses
        self._table = torch.zeros(
            num_addresses + _MAX_STEPS * self.num_columns, dtype=torch.int64, device=shape.device
        )
        self._addresses = self._table[:num_addresses].view(shape.num_layers, -1)
        self._schedule = self._table[num_addresses:]
        self._counter = torch.zeros((), dtype=torch.int64, device=shape.device)
        self.recurrent = self.buffers(4 * shape.dim, shape.output_dim, rows=False)
        self.projection = self.buffers(shape.output_dim, shape.dim, rows=False)
        self.allocate()
        self._graph: Optional[torch.cuda.CUDAGraph] = None
        if shape.device.type == "cuda":
            self._capture()

    def buffers(self, *sizes: int, rows: bool = True, full: bool = False) -> torch.Tensor:
        """Zeros: for each layer, of `rows` sentences unless false, in float32 if `full`."""
        shape = self.shape
        sizes = (shape.num_layers, *((shape.rows,) if rows else ()), *sizes)
        return torch.zeros(
            sizes, dtype=torch.float32 if full else shape.dtype, device=shape.device
        )

    def allocate(self) -> None:
        """Makes the buffers of each layer."""
        raise NotImplementedError

    def launch(self, layer: int, *place: Any) -> None:
        """
        Launches a step of a layer; `place` are its addresses, the schedule, the counter, and the
        offset from the counter, as all kernels take them.
        """
        raise NotImplementedError

    def run(self, addresses: Sequence[Sequence[int]], schedule: Sequence[Sequence[int]]) -> None:
        """
        Runs all steps of a schedule, at most `_MAX_STEPS`.

        # Parameters

        addresses : `Sequence[Sequence[int]]`
            Of each layer: the addresses that the kernels take.
        schedule : `Sequence[Sequence[int]]`
            Of each step: the numbers that the kernels take.
        """
        # Steps without sentences, so that the last graph is complete.
        missing = -len(schedule) % _STEPS
        rows = [*addresses, *schedule, *missing * [self.num_columns * [0]]]
        values = torch.tensor([number for row in rows for number in row], dtype=torch.int64)
        if self._graph is not None:
            values = values.pin_memory()
        self._table[: len(values)].copy_(values, non_blocking=True)
        self._counter.zero_()
        for _ in range((len(schedule) + missing) // _STEPS):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._launch_all()

    def grid(self, dim: int) -> Tuple[int, int]:
        return self.shape.rows, -(-dim // _block(dim))

    def _launch_all(self) -> None:
        shape = self.shape
        for layer in range(shape.num_layers):
            for offset in range(_STEPS):
                self.launch(layer, self._addresses[layer], self._schedule, self._counter, offset)
        self._counter += _STEPS

    def _capture(self) -> None:
        # The schedule has no sentences yet, so that nothing but buffers is written.
        self._launch_all()
        torch.cuda.synchronize(self.shape.device)
        self._graph = torch.cuda.CUDAGraph()
        # Graphs of a device share the memory that they need only while they run.
        others = (graph for graph in _graphs.values() if graph.shape.device == self.shape.device)
        other = next(others, None)
        pool = other._graph.pool() if other is not None and other._graph is not None else None
        with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
            main = torch.cuda.current_stream()
            sides = [torch.cuda.Stream() for _ in range(self.shape.num_layers)]
            for layer, side in enumerate(sides):
                side.wait_stream(main)
                with torch.cuda.stream(side):
                    for offset in range(_STEPS):
                        self.launch(
                            layer, self._addresses[layer], self._schedule, self._counter, offset
                        )
                main.wait_stream(side)
            self._counter += _STEPS


class _ForwardGraph(_Graph):
    num_columns, num_addresses = 2, 5

    def allocate(self) -> None:
        shape = self.shape
        self.hidden = self.buffers(shape.output_dim)
        self.cell_state = self.buffers(shape.dim, full=True)
        self._through_recurrent = self.buffers(4 * shape.dim)
        self._output = self.buffers(shape.dim)
        self._projected = self.buffers(shape.output_dim) if shape.projects else self._output

    def launch(self, layer: int, *place: Any) -> None:
        shape = self.shape
        hidden, output = self.hidden[layer], self._output[layer]
        recurrent, projected = self._through_recurrent[layer], self._projected[layer]
        torch.mm(hidden, self.recurrent[layer].t(), out=recurrent)
        self.kernels.forward_cell[self.grid(shape.dim)](
            *place, recurrent, self.cell_state[layer], output, shape.clip, shape.dim,
            KEEPS=shape.keeps, BLOCK=_block(shape.dim),
        )  # fmt: skip
        if shape.projects:
            torch.mm(output, self.projection[layer].t(), out=projected)
        self.kernels.forward_hidden[self.grid(shape.output_dim)](
            *place, projected, hidden, shape.projection_clip, shape.output_dim,
            BLOCK=_block(shape.output_dim),
        )  # fmt: skip


class _BackwardGraph(_Graph):
    num_columns, num_addresses = 4, 8

    def allocate(self) -> None:
        shape = self.shape
        self.d_cell_state = self.buffers(shape.dim, full=True)
        self.d_hidden = self.buffers(shape.output_dim)
        self._d_output = self.buffers(shape.dim)
        self._d_projected = self.buffers(shape.output_dim) if shape.projects else self._d_output
        self._d_gates = self.buffers(4 * shape.dim)

    def launch(self, layer: int, *place: Any) -> None:
        shape = self.shape
        d_projected, d_output = self._d_projected[layer], self._d_output[layer]
        d_gates, d_hidden = self._d_gates[layer], self.d_hidden[layer]
        self.kernels.backward_hidden[self.grid(shape.output_dim)](
            *place, d_hidden, d_projected, shape.projection_clip, shape.output_dim,
            PROJECTS=shape.projects, BLOCK=_block(shape.output_dim),
        )  # fmt: skip
        if shape.projects:
            torch.mm(d_projected, self.projection[layer], out=d_output)
        self.kernels.backward_cell[self.grid(shape.dim)](
            *place, d_output, self.d_cell_state[layer], d_gates, shape.clip, shape.dim,
            BLOCK=_block(shape.dim),
        )  # fmt: skip
        torch.mm(d_gates, self.recurrent[layer], out=d_hidden)


def _block(dim: int) -> int:
    """Units that one program computes."""
    return min(_BLOCK, 1 << max(4, (dim - 1).bit_length()))


# Graphs hold buffers, and another thread may not fill them before they were read.
_lock = Lock()
_graphs: "OrderedDict[Tuple[Type[_Graph], _Shape], _Graph]" = OrderedDict()


def _graph_of(kind: Type[_Graph], shape: _Shape) -> Any:
    key = kind, shape
    if key not in _graphs:
        if len(_graphs) >= tuning.MAX_GRAPHS:
            _graphs.popitem(last=False)
        # Buffers made in inference mode could not be changed outside of it.
        with torch.inference_mode(False), torch.no_grad():
            _graphs[key] = kind(shape)
    _graphs.move_to_end(key)
    return _graphs[key]


def _shape(
    cell: Cell, weights: Weights, dtype: torch.dtype, num_layers: int, rows: int, keeps: bool
) -> _Shape:
    assert isinstance(cell, LstmCell)
    device = weights.recurrent.device
    return _Shape(
        num_layers=num_layers,
        rows=_rounded(rows),
        dim=weights.hidden_dim(cell),
        output_dim=weights.output_dim,
        projects=weights.projection is not None,
        keeps=keeps,
        clip=cell.clip or inf,
        # As values of this type hold it, so that clipped values are recognised.
        projection_clip=torch.tensor(cell.projection_clip or inf, dtype=dtype).item(),
        dtype=dtype,
        device=device,
        stream=torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0,
    )


def _rounded(rows: int) -> int:
    """The next of 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20 …, four to each power of two."""
    multiple = max(1, 1 << ((rows - 1).bit_length() - 3)) if rows > 8 else 1
    return -(-rows // multiple) * multiple


def graph_forward(
    cell: Cell,
    calls: Sequence[LayerCall],
    batch_sizes: Sequence[int],
    saved: Optional[Sequence[SavedActivations]] = None,
) -> List[Tuple[torch.Tensor, RecurrentState]]:
    """See `compiled_forward`."""
    first, dtype = calls[0], calls[0].inputs.dtype
    rows = _num_rows(first.state, batch_sizes)
    shape = _shape(cell, first.weights, dtype, len(calls), rows, saved is not None)
    every_outputs = [
        saved[number].hidden_states
        if saved
        else call.inputs.new_empty(len(call.inputs), shape.output_dim)
        for number, call in enumerate(calls)
    ]
    with _lock:
        graph = _graph_of(_ForwardGraph, shape)
        for layer, (_, weights, state, _) in enumerate(calls):
            _copy_weights(graph, layer, weights)
            graph.hidden[layer].zero_()
            graph.cell_state[layer].zero_()
            if state is not None:
                graph.hidden[layer, :rows] = state.hidden
                graph.cell_state[layer, :rows] = state.cell
        for tokens, schedule in _pieces(batch_sizes, first.weights.input.size(0), _MAX_STEPS):
            # Alive until the steps that read them are in the queue of the device.
            products, addresses = [], []
            for number, (inputs, weights, _, _) in enumerate(calls):
                bias, input_weight = weights.bias.to(dtype), weights.input.to(dtype)
                products.append(torch.addmm(bias, inputs[tokens], input_weight.t()))
                kept: Tuple[int, ...] = (0, 0, 0)
                if saved:
                    gates, cell_states, cell_outputs, _ = saved[number]
                    kept = gates.data_ptr(), cell_states.data_ptr(), cell_outputs.data_ptr()
                # The kernels count tokens from the first of all.
                shift = tokens.start * products[-1].stride(0) * products[-1].element_size()
                address = products[-1].data_ptr() - shift
                addresses.append((address, every_outputs[number].data_ptr(), *kept))
            graph.run(addresses, schedule)
        return [
            (
                outputs,
                RecurrentState(
                    graph.hidden[layer, :rows].clone(),
                    graph.cell_state[layer, :rows].to(first.weights.bias.dtype, copy=True),
                ),
            )
            for layer, outputs in enumerate(every_outputs)
        ]


def graph_backward(
    cell: Cell,
    weights: Weights,
    batch_sizes: List[int],
    state: Optional[RecurrentState],
    activations: SavedActivations,
    gradients: Tuple[torch.Tensor, ...],
    d_gates: torch.Tensor,
    d_projected: Optional[torch.Tensor],
) -> RecurrentState:
    """See `backward_scan`."""
    dtype = d_gates.dtype
    d_outputs, d_hidden = (_dense(part, dtype) for part in gradients[:2])
    rows = len(d_hidden)
    initial = torch.zeros_like(gradients[2], dtype=torch.float32)
    if state is not None:
        initial = _dense(state.cell, torch.float32)
    shape = _shape(cell, weights, dtype, 1, rows, True)
    with _lock:
        graph = _graph_of(_BackwardGraph, shape)
        _copy_weights(graph, 0, weights)
        graph.d_cell_state[0, :rows] = gradients[2]
        starts = [0]
        for size in batch_sizes:
            starts.append(starts[-1] + size)
        steps = range(len(batch_sizes))
        schedule = [
            [starts[step], batch_sizes[step], starts[step - 1] if step else -1, size_after]
            for step, size_after in zip(steps, [*batch_sizes[1:], 0])
        ][::-1]
        tensors = (
            d_outputs, d_hidden, activations.hidden_states, d_projected,
            activations.gates, activations.cell_states, initial, d_gates,
        )  # fmt: skip
        addresses = [0 if part is None else part.data_ptr() for part in tensors]
        for begin in range(0, len(schedule), _MAX_STEPS):
            graph.run([addresses], schedule[begin : begin + _MAX_STEPS])
        size = batch_sizes[0] if batch_sizes else 0
        return RecurrentState(
            torch.cat([graph.d_hidden[0, :size], d_hidden[size:]]),
            graph.d_cell_state[0, :rows].clone(),
        )


def _num_rows(state: Optional[RecurrentState], batch_sizes: Sequence[int]) -> int:
    return len(state.cell) if state is not None else max(batch_sizes, default=0)


def _dense(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """As the kernels read them: contiguous, and at an address that is a multiple of 16."""
    values = values.to(dtype).contiguous()
    return values.clone() if values.data_ptr() % 16 else values


def _copy_weights(graph: _Graph, layer: int, weights: Weights) -> None:
    graph.recurrent[layer] = weights.recurrent
    if weights.projection is not None:
        graph.projection[layer] = weights.projection


def _pieces(
    batch_sizes: Sequence[int], num_gates: int, max_steps: int
) -> Iterator[Tuple[slice, List[Tuple[int, int]]]]:
    """
    The tokens of several steps, as many as have `tuning.MAX_GPU_INPUT_GATES` products with the
    inputs or one step, and their schedule.
    """
    most = tuning.MAX_GPU_INPUT_GATES // num_gates
    begin = start = 0
    schedule: List[Tuple[int, int]] = []
    for size in batch_sizes:
        if schedule and (start + size - begin > most or len(schedule) == max_steps):
            yield slice(begin, start), schedule
            begin, schedule = start, []
        schedule.append((start, size))
        start += size
    if schedule:
        yield slice(begin, start), schedule
