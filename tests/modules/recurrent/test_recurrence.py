"""`recurrences` against a plain loop that autograd differentiates, for every cell."""

import importlib
import pkgutil
from typing import Callable, List, NamedTuple, Optional

import pytest
import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.modules.recurrent import cells, compiled_scan, kernel_step
from elmo_plugin.modules.recurrent.cell import Cell
from elmo_plugin.modules.recurrent.cells.gru import GruCell
from elmo_plugin.modules.recurrent.cells.highway_lstm import HighwayLstmCell
from elmo_plugin.modules.recurrent.cells.lstm import LstmCell
from elmo_plugin.modules.recurrent.scan import RecurrentState
from elmo_plugin.modules.recurrent.weights import Weights
from tests.modules.recurrent.reference import reference_recurrence
from tests.modules.recurrent.single import recurrence

INPUT_DIM, DIM, PROJECTION_DIM = 5, 7, 3
# Sentences of 6, 6, 4, 4, 1 and 1 tokens.
UNEVEN = [6, 4, 4, 4, 2, 2]
SHAPES = {"uneven": UNEVEN, "even": [3, 3, 3], "one row": [1, 1, 1, 1], "one step": [4]}
MASK = torch.rand(6, DIM, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
# With the values below about a quarter of the cell_states and of the projections meet the clips.
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
every_layer = pytest.mark.parametrize("cell, projects", LAYERS.values(), ids=LAYERS)


class Values(NamedTuple):
    """All tensors that require gradients."""

    inputs: torch.Tensor
    weights: Weights
    hidden: Optional[torch.Tensor]
    cell_state: Optional[torch.Tensor]

    @property
    def state(self):
        return None if self.hidden is None else RecurrentState(self.hidden, self.cell_state)

    @property
    def with_gradients(self) -> List[torch.Tensor]:
        parts = (self.inputs, *self.weights, self.hidden, self.cell_state)
        return [part for part in parts if part is not None]

    def to(self, dtype: torch.dtype) -> "Values":
        def convert(part):
            return part if part is None else part.detach().to(dtype).requires_grad_()

        weights = Weights(*map(convert, self.weights))
        return Values(convert(self.inputs), weights, convert(self.hidden), convert(self.cell_state))


def make_values(
    cell: Cell, projects: bool, batch_sizes: List[int], starts: bool = True, scale: float = 1.0
) -> Values:
    generator = torch.Generator().manual_seed(3)
    output_dim = PROJECTION_DIM if projects else DIM

    def draw(*shape):
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (values * scale).requires_grad_()

    weights = Weights(
        draw(cell.num_input_gates * DIM, INPUT_DIM),
        draw(cell.num_recurrent_gates * DIM, output_dim),
        draw(len(cell.gates) * DIM),
        draw(PROJECTION_DIM, DIM) if projects else None,
    )
    hidden, cell_state = draw(batch_sizes[0], output_dim), draw(batch_sizes[0], DIM)
    state = (hidden, cell_state) if starts else (None, None)
    return Values(draw(sum(batch_sizes), INPUT_DIM), weights, *state)


def projected_step(cell: LstmCell, gates, cell_state, row):
    i, f, g, o = gates.split(DIM)
    cell_state = torch.sigmoid(f) * cell_state + torch.sigmoid(i) * torch.tanh(g)
    if cell.clip:
        cell_state = cell_state.clamp(-cell.clip, cell.clip)
    return cell_state, torch.sigmoid(o) * torch.tanh(cell_state)


def highway_step(cell: HighwayLstmCell, gates, cell_state, row):
    i, f, g, o, r, linear = gates.split(DIM)
    cell_state = torch.sigmoid(f) * cell_state + torch.sigmoid(i) * torch.tanh(g)
    r = torch.sigmoid(r)
    output = r * torch.sigmoid(o) * torch.tanh(cell_state) + (1 - r) * linear
    return cell_state, output if cell.dropout_mask is None else output * cell.dropout_mask[row]


def gru_step(cell: GruCell, gates, cell_state, row):
    recurrent, r, z, g = gates.split(DIM)
    z = torch.sigmoid(z)
    cell_state = (1 - z) * torch.tanh(g + torch.sigmoid(r) * recurrent) + z * cell_state
    return cell_state, cell_state


def test_every_cell_is_tested_here():
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(cells.__path__, f"{cells.__name__}.")
    ]
    product_cells = {
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Cell) and value is not Cell
    }
    assert product_cells == {type(cell) for cell, _ in LAYERS.values()} == set(STEPS)


STEPS = {LstmCell: projected_step, HighwayLstmCell: highway_step, GruCell: gru_step}


def slow(cell: Cell, values: Values, batch_sizes: List[int]):
    """One sentence at a time, one token at a time."""
    weights, step_of = values.weights, STEPS[type(cell)]
    recurrent_rows = slice(0, weights.recurrent.size(0))
    input_rows = slice(len(weights.bias) - weights.input.size(0), None)
    outputs = [[] for _ in batch_sizes]
    hiddens, cell_states = [], []
    for row in range(batch_sizes[0]):
        hidden = values.inputs.new_zeros(weights.recurrent.size(1))
        cell_state = values.inputs.new_zeros(DIM)
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
            outputs[step].append(hidden)
            start += size
        hiddens.append(hidden)
        cell_states.append(cell_state)
    rows = [row for step in outputs for row in step]
    return torch.stack(rows), torch.stack(hiddens), torch.stack(cell_states)


def run(cell: Cell, values: Values, batch_sizes: List[int], function: Callable = recurrence):
    outputs, state = function(cell, values.inputs, values.weights, batch_sizes, values.state)
    return (outputs, *state)


def gradients(results, values: Values, used=(0, 1, 2)) -> List[torch.Tensor]:
    """Of a weighted sum of some results, by every tensor that requires them."""
    generator = torch.Generator().manual_seed(1)
    weights = [
        torch.randn(part.shape, generator=generator, dtype=torch.float64) for part in results
    ]
    total = sum((results[number].double() * weights[number]).sum() for number in used)
    return torch.autograd.grad(
        total, values.with_gradients, allow_unused=True, materialize_grads=True, retain_graph=True
    )


def assert_same(found, expected, most: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        difference = (one.double() - other.double()).norm()
        assert difference <= most * other.norm()


@pytest.fixture(params=["compiled", "not compiled"])
def kernels(request, monkeypatch):
    """With the compiled cells, and as on a machine without a compiler."""
    if request.param == "compiled" and compiled_kernels() is None:
        pytest.skip("no C++ compiler")
    if request.param == "not compiled":
        for module in (kernel_step, compiled_scan):
            monkeypatch.setattr(module, "compiled_kernels", lambda: None)


# No kernel computes in float64.
@pytest.mark.parametrize(
    "kernels, dtype, most",
    [
        ("not compiled", torch.float64, 1e-10),
        ("not compiled", torch.float32, 1e-5),
        ("compiled", torch.float32, 1e-5),
    ],
    indirect=["kernels"],
)
@pytest.mark.parametrize("starts", [True, False], ids=["carried state", "zeros"])
@pytest.mark.parametrize("batch_sizes", SHAPES.values(), ids=SHAPES)
@every_layer
def test_values_and_gradients_are_those_of_a_loop(
    kernels, cell, projects, batch_sizes, starts, dtype, most
):
    exact = make_values(cell, projects, batch_sizes, starts)
    expected = slow(cell, exact, batch_sizes)
    values = exact.to(dtype)
    found = run(cell, values, batch_sizes)
    assert all(part.dtype == dtype for part in found)
    assert_same(found, expected, most)
    assert_same(gradients(found, values), gradients(expected, exact), most)


@every_layer
def test_the_reference_recurrence_is_that_loop_too(cell, projects):
    values = make_values(cell, projects, UNEVEN)
    expected = slow(cell, values, UNEVEN)
    found = run(cell, values, UNEVEN, reference_recurrence)
    assert_same(found, expected, 1e-12)
    assert_same(gradients(found, values), gradients(expected, values), 1e-12)


def test_a_projection_may_be_wider_than_all_gates(kernels):
    weights = Weights(torch.randn(4, 3), torch.randn(4, 6), torch.randn(4), torch.randn(6, 1))
    values = Values(torch.randn(3, 3), weights, None, None).to(torch.float32)
    found, expected = (
        run(LstmCell(), values, [2, 1], function) for function in (recurrence, reference_recurrence)
    )
    assert_same(found, expected, 1e-5)
    assert_same(gradients(found, values), gradients(expected, values), 1e-5)


@pytest.mark.parametrize("used", [(0,), (1,), (2,)], ids=["outputs", "hidden", "cell_state"])
@every_layer
def test_each_result_alone_has_the_right_gradients(kernels, cell, projects, used):
    exact = make_values(cell, projects, UNEVEN)
    values = exact.to(torch.float32)
    expected = gradients(slow(cell, exact, UNEVEN), exact, used)
    assert_same(gradients(run(cell, values, UNEVEN), values, used), expected, 1e-5)


def test_the_clips_of_these_tests_are_active_for_some_and_not_for_all():
    cell = LstmCell(0.3, 0.2)
    outputs, _, cell_states = slow(cell, make_values(cell, True, UNEVEN), UNEVEN)
    for values, clip in ((outputs, 0.2), (cell_states, 0.3)):
        share = (values.abs() == clip).double().mean()
        assert 0.1 < share < 0.9


@pytest.mark.parametrize(
    "cell, projects",
    [
        (LstmCell(0.5), True),
        (LstmCell(), False),
        (HighwayLstmCell(MASK), False),
        (GruCell(), False),
    ],
)
def test_gradients_equal_finite_differences(cell, projects):
    # No value near a clip: finite differences would step across its edge.
    values = make_values(cell, projects, [2, 2, 1], scale=0.3)

    def function(inputs, *parts):
        weights = Weights(*parts[:-2]) if projects else Weights(*parts[:-2], None)
        return run(cell, Values(inputs, weights, *parts[-2:]), [2, 2, 1])

    assert torch.autograd.gradcheck(function, values.with_gradients)


@every_layer
def test_results_are_the_same_without_gradients(kernels, cell, projects):
    values = make_values(cell, projects, UNEVEN).to(torch.float32)
    learned = run(cell, values, UNEVEN)
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert_same(run(cell, values, UNEVEN), learned, 1e-6)


@every_layer
def test_two_backward_passes_give_the_same(kernels, cell, projects):
    values = make_values(cell, projects, UNEVEN).to(torch.float32)
    results = run(cell, values, UNEVEN)
    assert_same(gradients(results, values), gradients(results, values), 0.0)


@every_layer
def test_a_sentence_gives_the_same_alone(kernels, cell, projects):
    values = make_values(cell, projects, UNEVEN, starts=False).to(torch.float32)
    outputs, _, _ = run(cell, values, UNEVEN)
    # The longest sentence stands first in each step.
    starts = [sum(UNEVEN[:step]) for step in range(len(UNEVEN))]
    alone, _, _ = run(cell, values._replace(inputs=values.inputs[starts]), [1] * len(UNEVEN))
    torch.testing.assert_close(alone, outputs[starts], rtol=1e-5, atol=1e-6)


@every_layer
def test_pieces_joined_by_the_carried_state_are_the_whole(kernels, cell, projects):
    values = make_values(cell, projects, [3] * 5).to(torch.float32)
    outputs, hidden, cell_state = run(cell, values, [3] * 5)
    first = run(cell, values._replace(inputs=values.inputs[:6]), [3, 3])
    rest = Values(values.inputs[6:], values.weights, *first[1:])
    second = run(cell, rest, [3, 3, 3])
    assert_same(
        (torch.cat([first[0], second[0]]), *second[1:]), (outputs, hidden, cell_state), 1e-6
    )


def wide_layer(cell: Cell, projects: bool):
    """
    Wide enough for several threads to share one sentence, and for several panels and a rest; an odd
    number of inputs, which are no whole pairs. Of one sentence and of several.
    """
    torch.manual_seed(2)
    dim, output_dim = (150, 131) if projects else (151, 151)
    if cell is LAYERS["highway with dropout"][0]:
        cell = HighwayLstmCell(torch.rand(6, dim))
    weights = Weights(
        torch.randn(cell.num_input_gates * dim, 9) / 3,
        torch.randn(cell.num_recurrent_gates * dim, output_dim) / 10,
        torch.randn(len(cell.gates) * dim),
        torch.randn(output_dim, dim) / 10 if projects else None,
    )
    # So many steps that their inputs are not multiplied all at once.
    return cell, weights, ([6, 6, 5, 5, 5, 3, 1], [1] * 700)


@pytest.mark.skipif(compiled_kernels() is None, reason="no C++ compiler")
@pytest.mark.parametrize("dtype, most", [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
@every_layer
def test_neither_threads_nor_other_sentences_change_a_digit(
    set_num_threads, monkeypatch, cell, projects, dtype, most
):
    if cell.kernel is None:
        # Of our cells, all have one; that of docs/adding-a-cell.md has none.
        pytest.skip("PyTorch's products depend on both")
    cell, weights, shapes = wide_layer(cell, projects)
    for sizes in shapes:
        inputs = torch.randn(sum(sizes), 9)
        expected = reference_recurrence(cell, inputs, weights, sizes)
        halves = Weights(*(part if part is None else part.to(dtype) for part in weights))
        found = []
        for threads in (1, 2, 3, 7):
            set_num_threads(threads)
            outputs, state = recurrence(cell, inputs.to(dtype), halves, sizes)
            found.append((outputs, *state))
        assert_same(found[0], (expected[0], *expected[1]), most)
        for results in found[1:]:
            assert all(map(torch.equal, results, found[0]))
        # The longest sentence alone.
        firsts = [sum(sizes[:step]) for step in range(len(sizes))]
        alone, _ = recurrence(cell, inputs.to(dtype)[firsts], halves, [1] * len(sizes))
        assert torch.equal(alone, found[0][0][firsts])
        if dtype == torch.bfloat16:
            monkeypatch.setattr(tuning, "MAX_COMPILED_BFLOAT16", 0)
            outputs, state = recurrence(cell, inputs.to(dtype), halves, sizes)
            monkeypatch.undo()
            assert_same((outputs, *state), found[0], most)


def test_input_gates_made_in_pieces_are_the_same(kernels, monkeypatch):
    cell = HighwayLstmCell()
    values = make_values(cell, False, UNEVEN).to(torch.float32)
    expected = run(cell, values, UNEVEN)
    # Fewer than one step fills, then a few steps.
    for most in (1, 9 * len(cell.gates) * DIM):
        monkeypatch.setattr(tuning, "MAX_INPUT_GATES", most)
        assert_same(run(cell, values, UNEVEN), expected, 1e-6)


def test_large_and_odd_numbers_of_rows_are_the_same(kernels):
    # Enough for a large buffer, and for whole vectors of the processor and a rest.
    torch.manual_seed(0)
    sizes = [203, 201, 130, 66, 7]
    weights = Weights(torch.randn(4 * 530, 9), torch.randn(4 * 530, 11), torch.randn(4 * 530))
    weights = weights._replace(projection=torch.randn(11, 530) / 20)
    values = Values(torch.randn(sum(sizes), 9), weights, None, None).to(torch.float64)
    cell = LstmCell(0.8, 0.9)
    expected = run(cell, values, sizes, reference_recurrence)
    single = values.to(torch.float32)
    found = run(cell, single, sizes)
    assert_same(found, expected, 1e-5)
    assert_same(gradients(found, single), gradients(expected, values), 1e-4)


# Up to a number of products, compiled steps are in float32.
under_autocast = pytest.mark.parametrize(
    "kernels, max_compiled",
    [("compiled", tuning.MAX_COMPILED_BFLOAT16), ("compiled", 0), ("not compiled", 0)],
    indirect=["kernels"],
    ids=["steps in float32", "steps in bfloat16", "not compiled"],
)


@under_autocast
@pytest.mark.parametrize("starts", [True, False], ids=["carried state", "zeros"])
@every_layer
def test_autocast_is_close_and_keeps_the_cell_state_in_float32(
    kernels, monkeypatch, max_compiled, cell, projects, starts
):
    monkeypatch.setattr(tuning, "MAX_COMPILED_BFLOAT16", max_compiled)
    # Where a clip begins, one rounding decides whether there is a gradient.
    if getattr(cell, "clip", None) or cell.projection_clip:
        cell = LstmCell(3.0, 3.0 if projects else None)
    exact = make_values(cell, projects, UNEVEN, starts, scale=0.5)
    expected = slow(cell, exact, UNEVEN)
    values = exact.to(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run(cell, values, UNEVEN)
        with torch.no_grad():
            read = run(cell, values, UNEVEN)
    assert [part.dtype for part in found] == [torch.bfloat16, torch.bfloat16, torch.float32]
    # Bfloat16 has eight bits: one rounding is up to 0.4 %, and they add up over six steps.
    assert_same(found, expected, 0.02)
    assert_same(read, found, 0.0)
    found_gradients = gradients(found, values)
    assert all(gradient.dtype == torch.float32 for gradient in found_gradients)
    assert_same(found_gradients, gradients(expected, exact), 0.03)


@under_autocast
def test_a_clip_that_bfloat16_cannot_hold_stops_gradients_too(kernels, monkeypatch, max_compiled):
    monkeypatch.setattr(tuning, "MAX_COMPILED_BFLOAT16", max_compiled)
    # Rounded, 0.7 is 0.69921875 and 0.3 is 0.30078125: clipped values must not count as free.
    for clip in (0.7, 0.3):
        cell = LstmCell(None, clip)
        values = make_values(cell, True, [3], scale=5.0).to(torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs, _, _ = run(cell, values, [3])
        is_clipped = outputs.abs() == outputs.abs().max()
        assert is_clipped.sum() > 4
        (gradient,) = torch.autograd.grad(
            (outputs * is_clipped).sum(), values.weights.projection, retain_graph=True
        )
        assert gradient.abs().max() == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@every_layer
def test_nan_is_passed_on(kernels, cell, projects, dtype):
    values = make_values(cell, projects, UNEVEN).to(dtype)
    with torch.no_grad():
        values.inputs[0] = float("nan")
        outputs, _, _ = run(cell, values, UNEVEN)
    firsts = [sum(UNEVEN[:step]) for step in range(4)]
    assert outputs[firsts].isnan().any(dim=1).all()
    others = torch.ones(len(outputs), dtype=torch.bool)
    others[[sum(UNEVEN[:step]) for step in range(6)]] = False
    assert outputs[others].isfinite().all()


def test_huge_gates_saturate_without_overflow(kernels):
    cell = LstmCell()
    values = make_values(cell, False, [4, 4], scale=1.0).to(torch.float32)
    values = values._replace(inputs=(values.inputs.detach() * 1e4).requires_grad_())
    results = run(cell, values, [4, 4])
    expected = run(cell, values.to(torch.float64), [4, 4], reference_recurrence)
    torch.testing.assert_close(results[0].double(), expected[0], rtol=1e-3, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in gradients(results, values))


def test_gradients_of_any_layout_are_taken(kernels):
    cell = HighwayLstmCell()
    values = make_values(cell, False, [3, 3], starts=False).to(torch.float32)
    outputs, hidden, cell_state = run(cell, values, [3, 3])
    weights = torch.randn(DIM, 6), torch.randn(DIM, 3)
    total = (outputs.t() * weights[0]).sum() + (cell_state.t() * weights[1]).sum() + hidden.sum()
    found = torch.autograd.grad(total, values.inputs)
    outputs, hidden, cell_state = run(cell, values, [3, 3], reference_recurrence)
    total = (outputs.t() * weights[0]).sum() + (cell_state.t() * weights[1]).sum() + hidden.sum()
    assert_same(found, torch.autograd.grad(total, values.inputs), 1e-5)


def test_an_initial_state_shared_by_all_rows_is_taken(kernels):
    cell = LstmCell()
    values = make_values(cell, True, [3, 2]).to(torch.float32)
    shared = values._replace(
        hidden=values.hidden[:1].expand(3, -1), cell_state=values.cell_state[:1]
    )
    shared = shared._replace(cell_state=shared.cell_state.expand(3, -1))
    with torch.no_grad():
        assert_same(
            run(cell, shared, [3, 2]), run(cell, shared, [3, 2], reference_recurrence), 1e-6
        )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
@every_layer
def test_an_initial_state_of_another_type_has_the_right_gradients(kernels, cell, projects, dtype):
    values = make_values(cell, projects, UNEVEN).to(torch.float32)
    state = (part.detach().to(dtype).requires_grad_() for part in values.state)
    other = Values(values.inputs, values.weights, *state)
    same = other._replace(hidden=other.hidden.float(), cell_state=other.cell_state.float())
    found, expected = run(cell, other, UNEVEN), run(cell, same, UNEVEN)
    assert_same(found, expected, 0.0)
    assert_same(gradients(found, other), gradients(expected, other), 1e-6)


@pytest.mark.parametrize("name", ["input", "recurrent", "projection"])
def test_one_weight_of_another_type_is_converted(kernels, name):
    cell = LstmCell(0.3, 0.2)
    values = make_values(cell, True, UNEVEN).to(torch.float32)
    half = getattr(values.weights, name).detach().bfloat16()
    mixed = values._replace(weights=values.weights._replace(**{name: half}))
    same = values._replace(weights=values.weights._replace(**{name: half.float()}))
    with torch.no_grad():
        assert_same(run(cell, mixed, UNEVEN), run(cell, same, UNEVEN), 1e-6)
    assert_same(run(cell, mixed, UNEVEN), run(cell, same, UNEVEN), 1e-6)


@every_layer
def test_no_token_at_all_gives_nothing_and_zero_gradients(cell, projects):
    values = make_values(cell, projects, [1], starts=False).to(torch.float32)
    values = values._replace(inputs=torch.zeros(0, INPUT_DIM, requires_grad=True))
    outputs, hidden, cell_state = run(cell, values, [])
    assert outputs.shape == hidden.shape == (0, values.weights.output_dim)
    assert cell_state.shape == (0, DIM)
    for gradient in gradients((outputs, hidden, cell_state), values):
        assert (gradient == 0).all()


@every_layer
@pytest.mark.parametrize("batch_sizes", [[3, 2], [2], [2, 0], [0], []], ids=str)
def test_a_state_may_have_rows_of_sentences_without_tokens(kernels, cell, projects, batch_sizes):
    if cell is LAYERS["highway with dropout"][0]:
        cell = HighwayLstmCell(MASK.float())
    values = make_values(cell, projects, [4]).to(torch.float32)
    values = values._replace(inputs=torch.randn(sum(batch_sizes), INPUT_DIM, requires_grad=True))
    found, expected = (
        run(cell, values, batch_sizes, function) for function in (recurrence, reference_recurrence)
    )
    assert found[2].shape == (4, DIM)
    assert_same(found, expected, 1e-5)
    pairs = zip(gradients(found, values), gradients(expected, values))
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_shapes_that_do_not_fit_are_refused_before_anything_is_read(kernels):
    cell = LstmCell()
    values = make_values(cell, True, [3, 2]).to(torch.float32)
    short = values._replace(hidden=values.hidden[:1], cell_state=values.cell_state[:1])
    narrow = values._replace(
        weights=values.weights._replace(recurrent=values.weights.recurrent[:DIM])
    )
    wide = values._replace(inputs=torch.randn(5, INPUT_DIM + 1))
    projection = torch.randn(PROJECTION_DIM, DIM + 1)
    no_fit = values._replace(weights=values.weights._replace(projection=projection))
    for wrong, batch_sizes in (
        (values, [3, 1]), (values, [2, 3]), (short, [3, 2]), (narrow, [3, 2]), (wide, [3, 2]),
        (no_fit, [3, 2]),
    ):  # fmt: skip
        with pytest.raises(AssertionError):
            run(cell, wrong, batch_sizes)


def test_a_part_that_is_frozen_changes_no_other_gradient(kernels):
    cell = LstmCell(0.3, 0.2)
    values = make_values(cell, True, UNEVEN).to(torch.float32)
    expected = gradients(run(cell, values, UNEVEN), values)[1]
    frozen = values._replace(
        inputs=values.inputs.detach(),
        weights=values.weights._replace(bias=values.weights.bias.detach()),
    )
    outputs = run(cell, frozen, UNEVEN)
    only = frozen._replace(weights=Weights(values.weights.input, None, None), inputs=None)
    only = only._replace(hidden=None, cell_state=None)
    assert_same(gradients(outputs, only), [expected], 1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@every_layer
def test_a_gpu_gives_what_the_processor_gives(cell, projects):
    values = make_values(cell, projects, UNEVEN)
    expected = run(cell, values, UNEVEN)
    if isinstance(cell, HighwayLstmCell) and cell.dropout_mask is not None:
        cell = HighwayLstmCell(cell.dropout_mask.cuda())
    moved = [part.detach().cuda().requires_grad_() for part in values.with_gradients]
    parts = moved[1:-2] if projects else [*moved[1:-2], None]
    there = Values(moved[0], Weights(*parts), *moved[-2:])
    found = run(cell, there, UNEVEN)
    assert_same([part.cpu() for part in found], expected, 1e-10)
    totals = [sum(part.sum() for part in results) for results in (found, expected)]
    found_gradients = torch.autograd.grad(totals[0], there.with_gradients)
    assert_same(
        [gradient.cpu() for gradient in found_gradients],
        torch.autograd.grad(totals[1], values.with_gradients),
        1e-10,
    )
