"""Every backend and every cell against a plain loop that autograd differentiates."""

import sys
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import List, NamedTuple, Optional

import pytest
import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.modules.recurrent import layer as layer_module
from elmo_plugin.modules.recurrent.cells import Cell, GruCell, HighwayLstmCell, LstmCell, Weights
from elmo_plugin.modules.recurrent.compiled_scan import CompiledScan
from elmo_plugin.modules.recurrent.cudnn import Cudnn
from elmo_plugin.modules.recurrent.graph_scan import GraphScan
from elmo_plugin.modules.recurrent.layer import recurrences
from elmo_plugin.modules.recurrent.loop import Loop
from elmo_plugin.modules.recurrent.scan import LayerCall, RecurrentState, Run

# Backends for GPUs run on a CPU too: PyTorch's functions are the same, Triton has an interpreter.
GPU = "cuda" if torch.cuda.is_available() else "cpu"
# Widths of whole vectors and a rest, that CUDA graphs take too.
INPUT_DIM, DIM, PROJECTION_DIM = 5, 24, 8
# Sentences of 6, 6, 4, 4, 1 and 1 tokens.
UNEVEN = [6, 4, 4, 4, 2, 2]
SHAPES = {"uneven": UNEVEN, "even": [3, 3, 3], "one row": [1, 1, 1, 1], "one step": [4]}
MASK = torch.rand(6, DIM, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
# With the values below about a quarter of the cell states and of the projections meet the clips.
LAYERS = {
    "clipped": (LstmCell(0.3, 0.2), True),
    "free": (LstmCell(), True),
    "cell state clipped": (LstmCell(0.3, None), True),
    "projection clipped": (LstmCell(None, 0.2), True),
    "not projected": (LstmCell(), False),
    "not projected, clipped": (LstmCell(0.3, None), False),
    "clip of a projection that is not there": (LstmCell(None, 0.2), False),
    "highway": (HighwayLstmCell(), False),
    "highway with dropout": (HighwayLstmCell(MASK), False),
    "gru": (GruCell(), False),
}


def projected_step(cell: LstmCell, gates, cell_state, row):
    i, f, g, o = gates.chunk(4)
    cell_state = torch.sigmoid(f) * cell_state + torch.sigmoid(i) * torch.tanh(g)
    if cell.clip:
        cell_state = cell_state.clamp(-cell.clip, cell.clip)
    return cell_state, torch.sigmoid(o) * torch.tanh(cell_state)


def highway_step(cell: HighwayLstmCell, gates, cell_state, row):
    i, f, g, o, r, linear = gates.chunk(6)
    cell_state = torch.sigmoid(f) * cell_state + torch.sigmoid(i) * torch.tanh(g)
    r = torch.sigmoid(r)
    output = r * torch.sigmoid(o) * torch.tanh(cell_state) + (1 - r) * linear
    return cell_state, output if cell.dropout_mask is None else output * cell.dropout_mask[row]


def gru_step(cell: GruCell, gates, cell_state, row):
    recurrent, r, z, g = gates.chunk(4)
    z = torch.sigmoid(z)
    cell_state = (1 - z) * torch.tanh(g + torch.sigmoid(r) * recurrent) + z * cell_state
    return cell_state, cell_state


def test_every_cell_is_tested_here():
    of_product = {cell for cell in Cell.__subclasses__() if "elmo_plugin" in cell.__module__}
    assert of_product == {type(cell) for cell, _ in LAYERS.values()} == set(STEPS)


STEPS = {LstmCell: projected_step, HighwayLstmCell: highway_step, GruCell: gru_step}


class Values(NamedTuple):
    """All tensors that require gradients."""

    inputs: torch.Tensor
    weights: Weights
    hidden: Optional[torch.Tensor] = None
    cell_state: Optional[torch.Tensor] = None

    @property
    def state(self):
        return None if self.hidden is None else RecurrentState(self.hidden, self.cell_state)

    @property
    def with_gradients(self) -> List[torch.Tensor]:
        parts = (self.inputs, *self.weights, self.hidden, self.cell_state)
        return [part for part in parts if part is not None]

    def to(self, *where) -> "Values":
        def convert(part):
            return part if part is None else part.detach().to(*where).requires_grad_()

        weights = Weights(*map(convert, self.weights))
        return Values(convert(self.inputs), weights, convert(self.hidden), convert(self.cell_state))


def make_values(
    cell: Cell, projects: bool, batch_sizes: List[int], starts: bool = True, scale: float = 1.0
) -> Values:
    generator = torch.Generator().manual_seed(3)
    output_dim = PROJECTION_DIM if projects else DIM
    # Sums of about the same size at all widths.
    scale /= (DIM / 7) ** 0.5

    def draw(*shape):
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (values * scale).requires_grad_()

    weights = Weights(
        draw(cell.num_input_gates * DIM, INPUT_DIM),
        draw(cell.num_recurrent_gates * DIM, output_dim),
        draw(len(cell.gates) * DIM),
        draw(PROJECTION_DIM, DIM) if projects else None,
    )
    hidden, cell_state = draw(max(batch_sizes), output_dim), draw(max(batch_sizes), DIM)
    state = (hidden, cell_state) if starts else (None, None)
    return Values(draw(sum(batch_sizes), INPUT_DIM), weights, *state)


def slow(cell: Cell, values: Values, batch_sizes: List[int]):
    """One sentence at a time, one token at a time."""
    weights, step_of = values.weights, STEPS.get(type(cell), formula_step)
    dim = weights.hidden_dim(cell)
    recurrent_rows = slice(0, weights.recurrent.size(0))
    input_rows = slice(len(weights.bias) - weights.input.size(0), None)
    outputs = [[] for _ in batch_sizes]
    hiddens, cell_states = [], []
    num_rows = max(batch_sizes) if values.hidden is None else len(values.hidden)
    for row in range(num_rows):
        hidden = values.inputs.new_zeros(weights.output_dim)
        cell_state = values.inputs.new_zeros(dim)
        if values.hidden is not None:
            hidden, cell_state = values.hidden[row], values.cell_state[row]
        start = 0
        for step, size in enumerate(batch_sizes):
            if row >= size:
                break
            gates = weights.bias.clone()
            gates[input_rows] += weights.input @ values.inputs[start + row]
            gates[recurrent_rows] += weights.recurrent @ hidden
            cell_state, hidden = step_of(cell, gates, cell_state, row)
            if weights.projection is not None:
                hidden = weights.projection @ hidden
                if cell.projection_clip:
                    hidden = hidden.clamp(-cell.projection_clip, cell.projection_clip)
            outputs[step].append(hidden[None])
            start += size
        hiddens.append(hidden)
        cell_states.append(cell_state)
    rows = [row for step in outputs for row in step]
    empty = values.inputs.new_empty(0, weights.output_dim)
    return torch.cat([empty, *rows]), torch.stack(hiddens), torch.stack(cell_states)


def formula_step(cell: Cell, gates, cell_state, row):
    cell_state, output = cell.formula(gates[None], cell_state[None])
    return cell_state[0], output[0]


def run(cell: Cell, values: Values, batch_sizes: List[int]):
    """Of one layer; results on a CPU."""
    calls = [LayerCall(values.inputs, values.weights, values.state)]
    ((outputs, state),) = recurrences(cell, calls, batch_sizes)
    return [part.cpu() for part in (outputs, *state)]


def gradients(results, values: Values, used=(0, 1, 2)) -> List[torch.Tensor]:
    """Of a weighted sum of some results, by every tensor that requires them."""
    generator = torch.Generator().manual_seed(1)
    weights = [
        torch.randn(part.shape, generator=generator, dtype=torch.float64) for part in results
    ]
    total = sum((results[number].double() * weights[number]).sum() for number in used)
    found = torch.autograd.grad(
        total, values.with_gradients, allow_unused=True, materialize_grads=True, retain_graph=True
    )
    return [part.cpu() for part in found]


def assert_same(found, expected, most: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        difference = (one.double() - other.double()).norm()
        assert difference <= most * other.norm()


class Way(NamedTuple):
    """A backend that computes a layer."""

    name: str
    cell: Cell
    projects: bool

    def make(self, batch_sizes, starts=True, scale=1.0):
        """Values in float64, and where the backend runs in its type."""
        # A GRU of cuDNN has no state before the first step.
        starts = starts and not (self.name == "cudnn" and type(self.cell) is GruCell)
        exact = make_values(self.cell, self.projects, batch_sizes, starts, scale)
        return exact, exact.to(self.device, torch.float32)

    @property
    def device(self):
        return GPU if self.name in ("graph", "cudnn") else "cpu"


def computes(name: str, cell: Cell, projects: bool) -> bool:
    is_lstm = type(cell) is LstmCell
    return {
        "cudnn": not projects and (type(cell) is GruCell or is_lstm and not cell.clip),
        "graph": is_lstm,
        "compiled": cell.kernel is not None,
        "loop": True,
    }[name]


BACKENDS = {"cudnn": Cudnn, "graph": GraphScan, "compiled": CompiledScan, "loop": Loop}


def only(monkeypatch, name: str):
    """Makes a backend the only one, on this machine; its calls of `forward` are recorded."""
    if name == "compiled" and compiled_kernels() is None:
        pytest.skip("no C++ compiler")
    if name == "graph":
        pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
    backend = BACKENDS[name]()
    if backend.device == "cuda":
        monkeypatch.setattr(BACKENDS[name], "device", GPU)
    monkeypatch.setattr(layer_module, "BACKENDS", (backend,))
    # Not in the type of the machine's tensor cores.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    return backend


ALL = {
    f"{name} {layer}": Way(name, *values)
    for layer, values in LAYERS.items()
    for name in BACKENDS
    if computes(name, *values)
}


@pytest.fixture(params=ALL.values(), ids=ALL)
def way(request, monkeypatch) -> Way:
    """Each backend with each layer that it computes."""
    only(monkeypatch, request.param.name)
    return request.param


@pytest.fixture(params=BACKENDS)
def lstm(request, monkeypatch) -> Way:
    """Each backend with one LSTM."""
    only(monkeypatch, request.param)
    projects = request.param != "cudnn"
    return Way(request.param, LstmCell(0.3, 0.2) if projects else LstmCell(), projects)


every_layer = pytest.mark.parametrize("cell, projects", LAYERS.values(), ids=LAYERS)


@pytest.mark.parametrize("starts", [True, False], ids=["carried state", "zeros"])
@pytest.mark.parametrize("batch_sizes", SHAPES.values(), ids=SHAPES)
def test_values_and_gradients_are_those_of_a_loop(way, batch_sizes, starts):
    exact, values = way.make(batch_sizes, starts)
    expected = slow(way.cell, exact, batch_sizes)
    found = run(way.cell, values, batch_sizes)
    assert all(part.dtype == torch.float32 for part in found)
    assert_same(found, expected, 1e-5)
    assert_same(gradients(found, values), gradients(expected, exact), 1e-5)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert_same(run(way.cell, values, batch_sizes), found, 1e-6)


@every_layer
def test_in_float64_they_are_exact(cell, projects):
    values = make_values(cell, projects, UNEVEN)
    expected, found = slow(cell, values, UNEVEN), run(cell, values, UNEVEN)
    assert_same(found, expected, 1e-10)
    assert_same(gradients(found, values), gradients(expected, values), 1e-10)


def test_each_result_alone_has_the_right_gradients(way):
    exact, values = way.make(UNEVEN)
    expected, found = slow(way.cell, exact, UNEVEN), run(way.cell, values, UNEVEN)
    for used in ((0,), (1,), (2,)):
        alone = gradients(found, values, used)
        assert_same(alone, gradients(expected, exact, used), 1e-5)
    # A second backward pass gives the same.
    assert_same(gradients(found, values, used), alone, 0.0)


def test_the_clips_of_these_tests_are_active_for_some_and_not_for_all():
    cell = LstmCell(0.3, 0.2)
    outputs, _, cell_states = slow(cell, make_values(cell, True, UNEVEN), UNEVEN)
    for values, clip in ((outputs, 0.2), (cell_states, 0.3)):
        share = (values.abs() == clip).double().mean()
        assert 0.1 < share < 0.9


@pytest.mark.parametrize("batch_sizes", [[3, 2], [2], [2, 0], [0]], ids=str)
def test_a_state_may_have_rows_of_sentences_without_tokens(way, batch_sizes):
    if way.name == "cudnn" and (type(way.cell) is GruCell or 0 in batch_sizes):
        pytest.skip("not for cuDNN")
    exact, _ = way.make([4])
    exact = exact._replace(inputs=torch.randn(sum(batch_sizes), INPUT_DIM).double())
    exact.inputs.requires_grad_()
    values = exact.to(way.device, torch.float32)
    expected, found = slow(way.cell, exact, batch_sizes), run(way.cell, values, batch_sizes)
    assert_same(found, expected, 1e-5)
    for one, other in zip(gradients(found, values), gradients(expected, exact)):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


@every_layer
def test_no_token_at_all_gives_nothing_and_zero_gradients(cell, projects):
    values = make_values(cell, projects, [1], starts=False).to(torch.float32)
    values = values._replace(inputs=torch.zeros(0, INPUT_DIM, requires_grad=True))
    outputs, hidden, cell_state = run(cell, values, [])
    assert outputs.shape == hidden.shape == (0, values.weights.output_dim)
    assert cell_state.shape == (0, DIM)
    for gradient in gradients((outputs, hidden, cell_state), values):
        assert (gradient == 0).all()


def test_nan_is_passed_on_to_its_sentence_only(way):
    _, values = way.make(UNEVEN)
    firsts = [sum(UNEVEN[:step]) for step in range(6)]
    with torch.no_grad():
        values.inputs[0] = float("nan")
        outputs, _, _ = run(way.cell, values, UNEVEN)
    assert outputs[firsts].isnan().any(dim=1).all()
    outputs[firsts] = 0.0
    assert outputs.isfinite().all()


def test_huge_gates_saturate_without_overflow(lstm):
    exact, _ = lstm.make([4, 4])
    exact = exact._replace(inputs=(exact.inputs.detach() * 1e4).requires_grad_())
    values = exact.to(lstm.device, torch.float32)
    found, expected = run(lstm.cell, values, [4, 4]), slow(lstm.cell, exact, [4, 4])
    torch.testing.assert_close(found[0].double(), expected[0], rtol=1e-3, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in gradients(found, values))


def test_states_and_gradients_of_any_layout_are_taken(lstm):
    exact, values = lstm.make([3, 3])
    # The same state for all sentences, in the memory of one.
    shared = [part.detach()[:1].expand(3, -1) for part in (values.hidden, values.cell_state)]
    found = run(lstm.cell, Values(values.inputs, values.weights, *shared), [3, 3])
    shared = [part.detach()[:1].expand(3, -1) for part in (exact.hidden, exact.cell_state)]
    expected = slow(lstm.cell, Values(exact.inputs, exact.weights, *shared), [3, 3])
    assert_same(found, expected, 1e-5)
    width = found[0].size(1)
    # Transposed, and at an odd address.
    for d_outputs in (torch.randn(width, 6).t(), torch.randn(6 * width + 1)[1:].view(6, width)):
        gradient = torch.autograd.grad(found[0], values.inputs, d_outputs, retain_graph=True)
        wanted = torch.autograd.grad(
            expected[0], exact.inputs, d_outputs.double(), retain_graph=True
        )
        assert_same([part.cpu() for part in gradient], wanted, 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_an_initial_state_of_another_type_has_the_right_gradients(lstm, dtype):
    _, values = lstm.make(UNEVEN)
    state = (part.detach().to(dtype).requires_grad_() for part in values.state)
    other = Values(values.inputs, values.weights, *state)
    same = other._replace(hidden=other.hidden.float(), cell_state=other.cell_state.float())
    found, expected = run(lstm.cell, other, UNEVEN), run(lstm.cell, same, UNEVEN)
    assert_same(found, expected, 0.0)
    assert_same(gradients(found, other), gradients(expected, other), 1e-6)


def test_a_part_that_is_frozen_changes_no_other_gradient(lstm):
    _, values = lstm.make(UNEVEN)
    expected = gradients(run(lstm.cell, values, UNEVEN), values)[1]
    weights = values.weights._replace(bias=values.weights.bias.detach())
    frozen = values._replace(inputs=values.inputs.detach(), weights=weights)
    found = run(lstm.cell, frozen, UNEVEN)
    only_input = Values(None, Weights(values.weights.input, None, None))
    assert_same(gradients(found, only_input), [expected], 1e-6)


def test_shapes_that_do_not_fit_are_refused_before_anything_is_read(lstm):
    _, values = lstm.make([3, 2])
    weights = values.weights
    short = values._replace(hidden=values.hidden[:1], cell_state=values.cell_state[:1])
    narrow = values._replace(weights=weights._replace(recurrent=weights.recurrent[:DIM]))
    wide = values._replace(inputs=torch.randn(5, INPUT_DIM + 1))
    for wrong, batch_sizes in (
        (values, [3, 1]), (values, [2, 3]), (short, [3, 2]), (narrow, [3, 2]), (wide, [3, 2]),
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            run(lstm.cell, wrong, batch_sizes)


def wide_layer(cell: Cell, projects: bool):
    """
    Wide enough for several threads to share one sentence, and for several panels and a rest; an odd
    number of inputs, which are no whole pairs. Of one sentence and of several.
    """
    torch.manual_seed(2)
    dim, output_dim = (150, 131) if projects else (151, 151)
    if getattr(cell, "dropout_mask", None) is not None:
        cell = HighwayLstmCell(torch.rand(6, dim))
    weights = Weights(
        torch.randn(cell.num_input_gates * dim, 9) / 3,
        torch.randn(cell.num_recurrent_gates * dim, output_dim) / 10,
        torch.randn(len(cell.gates) * dim),
        torch.randn(output_dim, dim) / 10 if projects else None,
    )
    # So many steps that their inputs are not multiplied all at once.
    return cell, weights, ([6, 6, 5, 5, 5, 3, 1], [1] * 300)


@pytest.mark.skipif(compiled_kernels() is None, reason="no C++ compiler")
@pytest.mark.parametrize("dtype, most", [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
@pytest.mark.parametrize("name", ["clipped", "highway with dropout", "gru"])
def test_neither_threads_nor_other_sentences_change_a_digit(
    set_num_threads, monkeypatch, name, dtype, most
):
    cell, weights, shapes = wide_layer(*LAYERS[name])
    for sizes in shapes:
        inputs = torch.randn(sum(sizes), 9)
        expected = slow(cell, Values(inputs, weights), sizes)
        values = Values(inputs, weights).to(dtype)
        with torch.no_grad():
            found = []
            for threads in (1, 2, 3, 7):
                set_num_threads(threads)
                found.append(run(cell, values, sizes))
            # The longest sentence alone.
            firsts = [sum(sizes[:step]) for step in range(len(sizes))]
            alone = run(cell, values._replace(inputs=values.inputs[firsts]), [1] * len(sizes))
            with monkeypatch.context() as patch:
                patch.setattr(tuning, "MAX_COMPILED_BFLOAT16", 0)
                by_steps = run(cell, values, sizes)
        assert_same(found[0], expected, most)
        assert_same(by_steps, found[0], most)
        assert torch.equal(alone[0], found[0][0][firsts])
        for results in found[1:]:
            assert all(map(torch.equal, results, found[0]))


@pytest.mark.parametrize("name", ["compiled", "loop"])
def test_large_and_odd_numbers_of_rows_are_the_same(monkeypatch, name):
    # Enough for a large buffer, and for whole vectors of the processor and a rest.
    torch.manual_seed(0)
    sizes, cell = [203, 201, 130, 66, 7], LstmCell(0.8, 0.9)
    weights = Weights(torch.randn(4 * 530, 9), torch.randn(4 * 530, 11), torch.randn(4 * 530))
    weights = weights._replace(projection=torch.randn(11, 530) / 20)
    exact = Values(torch.randn(sum(sizes), 9), weights).to(torch.float64)
    expected = run(cell, exact, sizes)
    only(monkeypatch, name)
    values = exact.to(torch.float32)
    found = run(cell, values, sizes)
    assert_same(found, expected, 1e-5)
    assert_same(gradients(found, values), gradients(expected, exact), 1e-4)
    # A projection wider than all gates.
    weights = Weights(torch.randn(4, 3), torch.randn(4, 6), torch.randn(4), torch.randn(6, 1))
    exact = Values(torch.randn(3, 3), weights).to(torch.float64)
    assert_same(run(cell, exact.to(torch.float32), [2, 1]), slow(cell, exact, [2, 1]), 1e-5)


# Up to a number of products, compiled steps are in float32.
@pytest.mark.parametrize("max_compiled", [tuning.MAX_COMPILED_BFLOAT16, 0])
@every_layer
def test_autocast_is_close_and_keeps_the_cell_state_in_float32(
    monkeypatch, max_compiled, cell, projects
):
    monkeypatch.setattr(tuning, "MAX_COMPILED_BFLOAT16", max_compiled)
    assert_close_under_autocast(Way("loop", cell, projects))


@pytest.mark.parametrize("name", ["cudnn", "graph", "loop"])
def test_so_it_is_by_other_backends(monkeypatch, name):
    # Without kernels for the steps in bfloat16, too.
    monkeypatch.setattr("elmo_plugin.modules.recurrent.loop.compiled_kernels", lambda: None)
    only(monkeypatch, name)
    assert_close_under_autocast(Way(name, LstmCell(), name != "cudnn"))


def assert_close_under_autocast(way: Way) -> None:
    # Where a clip begins, one rounding decides whether there is a gradient.
    if getattr(way.cell, "clip", None) or way.cell.projection_clip:
        way = way._replace(cell=LstmCell(3.0, 3.0 if way.projects else None))
    for starts in (True, False):
        exact, values = way.make(UNEVEN, starts, scale=0.5)
        expected = slow(way.cell, exact, UNEVEN)
        with torch.autocast(way.device, dtype=torch.bfloat16):
            found = run(way.cell, values, UNEVEN)
            with torch.no_grad():
                read = run(way.cell, values, UNEVEN)
        assert [part.dtype for part in found] == [torch.bfloat16, torch.bfloat16, torch.float32]
        # Bfloat16 has eight bits: one rounding is up to 0.4 %, and they add up over six steps.
        assert_same(found, expected, 0.02)
        assert_same(read, found, 0.0)
        found_gradients = gradients(found, values)
        assert all(gradient.dtype == torch.float32 for gradient in found_gradients)
        assert_same(found_gradients, gradients(expected, exact), 0.03)


@pytest.mark.parametrize("name", ["compiled", "graph", "loop"])
def test_a_clip_that_bfloat16_cannot_hold_stops_gradients_too(monkeypatch, name):
    only(monkeypatch, name)
    # Rounded, 0.7 is 0.69921875 and 0.3 is 0.30078125: clipped values must not count as free.
    for clip in (0.7, 0.3):
        way = Way(name, LstmCell(None, clip), True)
        _, values = way.make([3], scale=5.0)
        with torch.autocast(way.device, dtype=torch.bfloat16):
            outputs, _, _ = run(way.cell, values, [3])
        is_clipped = outputs.abs() == outputs.abs().max()
        assert is_clipped.sum() > 4
        (gradient,) = torch.autograd.grad((outputs * is_clipped).sum(), values.weights.projection)
        assert gradient.abs().max() == 0


def test_each_backend_knows_what_it_computes(monkeypatch):
    """In order: on a GPU, CUDA graphs compute what cuDNN does not."""
    assert [type(each) for each in layer_module.BACKENDS] == [Cudnn, GraphScan, CompiledScan, Loop]
    monkeypatch.setattr("elmo_plugin.modules.recurrent.graph_scan.has_triton", lambda _: True)
    kernels = Namespace(panel_width=lambda: 8)
    monkeypatch.setattr(
        "elmo_plugin.modules.recurrent.compiled_scan.compiled_kernels", lambda: kernels
    )
    for cell, projects in LAYERS.values():
        values = make_values(cell, projects, UNEVEN, starts=False).to(torch.float32)
        calls = [LayerCall(values.inputs, values.weights)]
        for name, backend in BACKENDS.items():
            can_run = backend().can_run(Run(cell, calls, UNEVEN), torch.float32, True)
            assert can_run == computes(name, cell, projects)
    # So are large products of float32 without AVX-512.
    layer = LayerCall(values.inputs, values.weights._replace(recurrent=torch.empty(1, 4096)))
    for size, width, expected in ((16_384, 8, True), (16_385, 8, False), (16_385, 16, True)):
        kernels.panel_width = partial(int, width)
        large = Run(LstmCell(), [layer], [size])
        assert CompiledScan().can_run(large, torch.float32, False) == expected
    # The last is a GRU.
    state = RecurrentState(torch.zeros(6, DIM), torch.zeros(6, DIM))
    calls = [calls[0]._replace(state=state)]
    assert not Cudnn().can_run(Run(cell, calls, UNEVEN), torch.float32, True)
    # Large products of bfloat16, and all whose gradients are needed, are faster step by step.
    calls = [LayerCall(values.inputs, Weights(*(part.bfloat16() for part in calls[0].weights[:3])))]
    for sizes, has_gradients in (([6], False), ([6], True), ([10_000], False)):
        run_of = Run(cell, calls, sizes)
        is_fast = (sizes, has_gradients) == ([6], False)
        assert CompiledScan().can_run(run_of, torch.bfloat16, has_gradients) == is_fast
        assert not Cudnn().can_run(run_of._replace(cell=LstmCell()), torch.bfloat16, False)


def test_few_files_compute_a_training_step():
    """What a reader must know of the whole package to follow it."""
    layer = layer_module.RecurrentLayer(LstmCell(0.3, 0.2), INPUT_DIM, DIM, PROJECTION_DIM)

    def step():
        outputs, _ = layer(torch.randn(sum(UNEVEN), INPUT_DIM, requires_grad=True), UNEVEN)
        outputs.sum().backward()

    # Kernels are built once.
    step()
    files = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        # Autograd calls backward functions in this thread, on a CPU.
        step()
    finally:
        sys.setprofile(None)
    crossed = {Path(name).name for name in files if "/elmo_plugin/" in name}
    assert {"layer.py", "scan.py"} <= crossed and len(crossed) <= 5, crossed


def test_tiny_hidden_states_keep_their_digits_in_a_graph(monkeypatch):
    only(monkeypatch, "graph")
    way = Way("graph", LstmCell(), True)
    exact, values = way.make([3, 3], starts=False, scale=1e-3)
    with torch.no_grad():
        found = run(way.cell, values, [3, 3])
    assert found[0].abs().max() < 1e-4
    assert_same(found, slow(way.cell, exact, [3, 3]), 2e-7)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every_layer
def test_a_gpu_gives_what_the_processor_gives(cell, projects):
    values = make_values(cell, projects, UNEVEN)
    expected = run(cell, values, UNEVEN)
    wanted = gradients(expected, values)
    if isinstance(cell, HighwayLstmCell) and cell.dropout_mask is not None:
        cell = HighwayLstmCell(cell.dropout_mask.cuda())
    there = values.to("cuda")
    found = run(cell, there, UNEVEN)
    assert_same(found, expected, 1e-10)
    assert_same(gradients(found, there), wanted, 1e-10)
