"""
CUDA graphs of a few steps of LSTM layers.

A graph is captured once for each number of sentences (rounded up), widths and type, then serves
every layer and length. Its kernels read from device memory which step they compute
(`kernels/gpu/lstm_steps.py`), and weights are copied to where it reads them.
"""

from collections import OrderedDict
from threading import Lock
from typing import Any, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar
from weakref import WeakValueDictionary

import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.gpu import kernels

# Most steps whose schedule is copied to the device at once.
MAX_STEPS = 2048
# Steps of one graph.
_STEPS = 4
# Most units that one program computes.
_BLOCK = 1024


class Shape(NamedTuple):
    """What a graph is captured for."""

    #: Numbers of independent layers and of sentences; widths of the cell and the hidden state.
    num_layers: int
    rows: int
    dim: int
    output_dim: int
    #: Whether there is a projection, and whether activations are kept for the backward pass.
    projects: bool
    keeps: bool
    #: Bounds on the cell state and on the projection; infinity for no bound.
    clip: float
    projection_clip: float
    #: Type of the products.
    dtype: torch.dtype
    #: Precision of float32 products, see `torch.set_float32_matmul_precision`.
    precision: str
    #: Where the graph runs.
    device: torch.device
    stream: int


class StepGraph:
    """The launches and buffers of a few steps. Without a GPU, in tests, each run launches anew."""

    num_columns: int
    num_addresses: int

    def __init__(self, shape: Shape) -> None:
        self.kernels: Any = kernels("lstm_steps")
        self.shape = shape
        num_addresses = shape.num_layers * self.num_addresses
        self._table = torch.zeros(
            num_addresses + MAX_STEPS * self.num_columns, dtype=torch.int64, device=shape.device
        )
        self._addresses = self._table[:num_addresses].view(shape.num_layers, -1)
        self._schedule = self._table[num_addresses:]
        self._counter = torch.zeros((), dtype=torch.int64, device=shape.device)
        # Kept alive, so that graphs for other numbers of sentences find it.
        self._weights = _weights_of(shape)
        self.recurrent, self.projection = self._weights.recurrent, self._weights.projection
        self.allocate()
        self._graph: Optional[torch.cuda.CUDAGraph] = None
        if shape.device.type == "cuda":
            self._graph = self._captured()

    def buffer(self, width: int, full: bool = False) -> torch.Tensor:
        """Zeros of shape `(num_layers, rows, width)`, in float32 if `full`."""
        shape = self.shape
        dtype = torch.float32 if full else shape.dtype
        return torch.zeros(shape.num_layers, shape.rows, width, dtype=dtype, device=shape.device)

    def allocate(self) -> None:
        """Makes the buffers."""

    def launch(self, layer: int, *place: Any) -> None:
        """Launches a step of a layer; `place` are the first four arguments of every kernel."""

    def run(self, addresses: Sequence[Sequence[int]], schedule: Sequence[Sequence[int]]) -> None:
        """Runs up to `MAX_STEPS` steps. `addresses` has a row per layer, `schedule` per step."""
        # Steps without sentences, so that the last graph is complete.
        missing = -len(schedule) % _STEPS
        rows = [*addresses, *schedule, *missing * [self.num_columns * [0]]]
        values = torch.tensor(
            [number for row in rows for number in row], dtype=torch.int64, device="cpu"
        )
        if self._graph is not None:
            values = values.pin_memory()
        self._table[: len(values)].copy_(values, non_blocking=True)
        self._counter.zero_()
        for _ in range((len(schedule) + missing) // _STEPS):
            if self._graph is not None:
                self._graph.replay()
            else:
                self._launch_all()

    def grid(self, width: int) -> Tuple[int, int]:
        """Programs: one for each row and block of units."""
        return self.shape.rows, -(-width // block(width))

    def _launch_layer(self, layer: int) -> None:
        for offset in range(_STEPS):
            self.launch(layer, self._addresses[layer], self._schedule, self._counter, offset)

    def _launch_all(self) -> None:
        for layer in range(self.shape.num_layers):
            self._launch_layer(layer)
        self._counter += _STEPS

    def _captured(self) -> torch.cuda.CUDAGraph:
        # Kernels are compiled now. The schedule has no sentences yet, so only buffers are written.
        self._launch_all()
        torch.cuda.synchronize(self.shape.device)
        # Graphs of one stream share their temporary memory.
        others = (
            graph._graph
            for graph in _graphs.values()
            if graph.shape[-2:] == self.shape[-2:] and graph._graph is not None
        )
        other = next(others, None)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph,
            pool=None if other is None else other.pool(),
            stream=torch.cuda.Stream(self.shape.device),
            capture_error_mode="thread_local",
        ):
            main = torch.cuda.current_stream()
            for layer in range(self.shape.num_layers):
                # Layers run side by side.
                side = torch.cuda.Stream()
                side.wait_stream(main)
                with torch.cuda.stream(side):
                    self._launch_layer(layer)
                main.wait_stream(side)
            self._counter += _STEPS
        return graph


class ForwardGraph(StepGraph):
    """Forward steps. `hidden` and `cell_state` hold the initial, after a run the final state."""

    num_columns, num_addresses = 2, 5

    def allocate(self) -> None:
        shape = self.shape
        self.hidden = self.buffer(shape.output_dim)
        self.cell_state = self.buffer(shape.dim, full=True)
        self._through_recurrent = self.buffer(4 * shape.dim)
        self._output = self.buffer(shape.dim)
        self._projected = self.buffer(shape.output_dim) if shape.projects else self._output

    def launch(self, layer: int, *place: Any) -> None:
        shape = self.shape
        hidden, output = self.hidden[layer], self._output[layer]
        recurrent, projected = self._through_recurrent[layer], self._projected[layer]
        torch.mm(hidden, self.recurrent[layer].t(), out=recurrent)
        self.kernels.forward_cell[self.grid(shape.dim)](
            *place, recurrent, self.cell_state[layer], output, shape.clip, shape.dim,
            KEEPS=shape.keeps, BLOCK=block(shape.dim), enable_fp_fusion=True,
        )  # fmt: skip
        if shape.projects:
            torch.mm(output, self.projection[layer].t(), out=projected)
        self.kernels.forward_hidden[self.grid(shape.output_dim)](
            *place, projected, hidden, shape.projection_clip, shape.output_dim,
            BLOCK=block(shape.output_dim), enable_fp_fusion=True,
        )  # fmt: skip


class BackwardGraph(StepGraph):
    """
    Backward steps. `d_cell_state` is the gradient of the final cell state before a run, and of the
    initial one after it; `d_hidden` is then the initial hidden state's.
    """

    num_columns, num_addresses = 4, 8

    def allocate(self) -> None:
        shape = self.shape
        self.d_cell_state = self.buffer(shape.dim, full=True)
        self.d_hidden = self.buffer(shape.output_dim)
        self._d_output = self.buffer(shape.dim)
        self._d_projected = self.buffer(shape.output_dim) if shape.projects else self._d_output
        self._d_gates = self.buffer(4 * shape.dim)

    def launch(self, layer: int, *place: Any) -> None:
        shape = self.shape
        d_projected, d_output = self._d_projected[layer], self._d_output[layer]
        d_gates, d_hidden = self._d_gates[layer], self.d_hidden[layer]
        self.kernels.backward_hidden[self.grid(shape.output_dim)](
            *place, d_hidden, d_projected, shape.projection_clip, shape.output_dim,
            PROJECTS=shape.projects, BLOCK=block(shape.output_dim), enable_fp_fusion=True,
        )  # fmt: skip
        if shape.projects:
            torch.mm(d_projected, self.projection[layer], out=d_output)
        self.kernels.backward_cell[self.grid(shape.dim)](
            *place, d_output, self.d_cell_state[layer], d_gates, shape.clip, shape.dim,
            BLOCK=block(shape.dim), enable_fp_fusion=True,
        )  # fmt: skip
        torch.mm(d_gates, self.recurrent[layer], out=d_hidden)


def block(width: int) -> int:
    """Units that one program computes: a power of two."""
    return min(_BLOCK, 1 << max(4, (width - 1).bit_length()))


Graph = TypeVar("Graph", bound=StepGraph)
#: Hold it from `graph_of` until results are copied: the next call fills the same buffers.
LOCK = Lock()
_graphs: "OrderedDict[Tuple[Type[StepGraph], Shape], StepGraph]" = OrderedDict()
_weights: "WeakValueDictionary[Shape, _Weights]" = WeakValueDictionary()


def graph_of(kind: Type[Graph], shape: Shape) -> Graph:
    """The graph of this kind and shape, captured if it is not among those used last."""
    key = kind, shape
    if key not in _graphs:
        if len(_graphs) >= tuning.MAX_GRAPHS:
            _graphs.popitem(last=False)
        # Buffers made in inference mode could not be changed outside of it.
        with torch.inference_mode(False), torch.no_grad():
            _graphs[key] = kind(shape)
    _graphs.move_to_end(key)
    graph = _graphs[key]
    assert isinstance(graph, kind)
    return graph


class _Weights:
    def __init__(self, shape: Shape) -> None:
        layers, dim, width = shape.num_layers, shape.dim, shape.output_dim
        kind: Any = {"dtype": shape.dtype, "device": shape.device}
        self.recurrent = torch.zeros(layers, 4 * dim, width, **kind)
        self.projection = torch.zeros(layers, width, dim, **kind)


def _weights_of(shape: Shape) -> _Weights:
    """The buffers of a shape, shared by all numbers of sentences and freed with the last graph."""
    key = shape._replace(rows=0, keeps=False)
    found = _weights.get(key) or _Weights(shape)
    _weights[key] = found
    return found
