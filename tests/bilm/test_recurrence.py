"""`LstmRecurrence` against a plain loop that autograd differentiates."""

from typing import List, NamedTuple, Optional

import pytest
import torch

from elmo_plugin.bilm.options import LstmOptions
from elmo_plugin.bilm.projected_lstm import LstmState, ProjectedLstm
from elmo_plugin.bilm.recurrence import Clips, LstmRecurrence
from tests.bilm.oracle import relative_error

INPUT_DIM, DIM, PROJECTION_DIM = 5, 7, 3
# Sentences of 6, 6, 4, 4, 1 and 1 tokens.
UNEVEN = [6, 4, 4, 4, 2, 2]
EVEN = [3, 3, 3]
SHAPES = {"uneven": UNEVEN, "even": EVEN, "one row": [1, 1, 1, 1], "one step": [4]}
# With the values below about a quarter of the cells and of the projections meet these.
CLIPS = {
    "clipped": Clips(0.3, 0.2),
    "free": Clips(None, None),
    "cell only": Clips(0.3, None),
    "projection only": Clips(None, 0.2),
}


class Values(NamedTuple):
    """What `LstmRecurrence` takes, less what learns nothing."""

    inputs: torch.Tensor
    hidden: torch.Tensor
    cell: torch.Tensor
    input_weight: torch.Tensor
    recurrent_weight: torch.Tensor
    bias: torch.Tensor
    projection_weight: Optional[torch.Tensor]


def make_values(batch_sizes: List[int], projects: bool = True, seed: int = 0, scale=1.0) -> Values:
    generator = torch.Generator().manual_seed(seed)
    output_dim = PROJECTION_DIM if projects else DIM

    def draw(*shape):
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        return (values * scale).requires_grad_()

    return Values(
        draw(sum(batch_sizes), INPUT_DIM),
        draw(batch_sizes[0], output_dim),
        draw(batch_sizes[0], DIM),
        draw(4 * DIM, INPUT_DIM),
        draw(4 * DIM, output_dim),
        draw(4 * DIM),
        draw(PROJECTION_DIM, DIM) if projects else None,
    )


def as_type(values: Values, dtype: torch.dtype) -> Values:
    return Values(
        *(part if part is None else part.detach().to(dtype).requires_grad_() for part in values)
    )


def slow(values: Values, batch_sizes: List[int], clips: Clips):
    """One sentence at a time, one token at a time."""
    outputs = [[] for _ in batch_sizes]
    hiddens, cells = [], []
    for sentence in range(batch_sizes[0]):
        hidden, cell = values.hidden[sentence], values.cell[sentence]
        start = 0
        for step, size in enumerate(batch_sizes):
            if sentence >= size:
                break
            gates = values.input_weight @ values.inputs[start + sentence]
            gates = gates + values.recurrent_weight @ hidden + values.bias
            i, f, o, g = gates.split(DIM)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            if clips.cell:
                cell = cell.clamp(-clips.cell, clips.cell)
            hidden = torch.sigmoid(o) * torch.tanh(cell)
            if values.projection_weight is not None:
                hidden = values.projection_weight @ hidden
                if clips.projection:
                    hidden = hidden.clamp(-clips.projection, clips.projection)
            outputs[step].append(hidden)
            start += size
        hiddens.append(hidden)
        cells.append(cell)
    rows = [row for step in outputs for row in step]
    return torch.stack(rows), torch.stack(hiddens), torch.stack(cells)


def gradients(results, values: Values, used=(0, 1, 2)) -> List[torch.Tensor]:
    """Of a weighted sum of some results, by everything that learns."""
    generator = torch.Generator().manual_seed(1)
    weights = [
        torch.randn(part.shape, generator=generator, dtype=torch.float64) for part in results
    ]
    total = sum((results[number].double() * weights[number]).sum() for number in used)
    learning = [part for part in values if part is not None]
    return torch.autograd.grad(total, learning, allow_unused=True, materialize_grads=True)


def assert_same(found, expected, most):
    for one, other in zip(found, expected, strict=True):
        if other.norm() == 0:
            assert one.norm() == 0
        else:
            assert relative_error(one, other) < most


@pytest.mark.parametrize("dtype, most", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("clips", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize("batch_sizes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("projects", [True, False], ids=["projected", "not projected"])
def test_values_and_gradients_are_those_of_a_loop(dtype, most, clips, batch_sizes, projects):
    if not projects:
        clips = clips._replace(projection=None)
    exact = make_values(batch_sizes, projects)
    expected = slow(exact, batch_sizes, clips)
    values = as_type(exact, dtype)
    found = LstmRecurrence.apply(*values, batch_sizes, clips)
    assert all(part.dtype == dtype for part in found)
    assert_same(found, expected, most)
    assert_same(gradients(found, values), gradients(expected, exact), most)


@pytest.mark.parametrize("used", [(0,), (1,), (2,)], ids=["outputs", "hidden", "cell"])
def test_each_result_alone_has_the_right_gradients(used):
    values = make_values(UNEVEN)
    expected = gradients(slow(values, UNEVEN, CLIPS["clipped"]), values, used)
    found = gradients(LstmRecurrence.apply(*values, UNEVEN, CLIPS["clipped"]), values, used)
    assert_same(found, expected, 1e-10)


def test_the_clips_of_these_tests_are_active_for_some_and_not_for_all():
    outputs, _, cells = slow(make_values(UNEVEN), UNEVEN, CLIPS["clipped"])
    for values, clip in ((outputs, 0.2), (cells, 0.3)):
        share = (values.abs() == clip).double().mean()
        assert 0.1 < share < 0.9


@pytest.mark.parametrize("projects", [True, False])
def test_gradients_equal_finite_differences(projects):
    batch_sizes = [2, 2, 1]
    # No value near a clip: finite differences would step across its edge.
    values = make_values(batch_sizes, projects, seed=3, scale=0.3)
    clips = Clips(0.5, None)

    def function(*learning):
        return LstmRecurrence.apply(*learning, *(() if projects else (None,)), batch_sizes, clips)

    learning = [part for part in values if part is not None]
    assert torch.autograd.gradcheck(function, learning)


def test_a_clip_that_bfloat16_cannot_hold_stops_gradients_too():
    # Rounded, 0.7 is 0.69921875 and 0.3 is 0.30078125: clipped values must not count as free.
    for clip in (0.7, 0.3):
        values = as_type(make_values([3], scale=5.0), torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs, _, _ = LstmRecurrence.apply(*values, [3], Clips(None, clip))
        is_clipped = outputs.abs() == outputs.abs().max()
        assert is_clipped.sum() > 4
        (gradient,) = torch.autograd.grad(
            (outputs * is_clipped).sum(), values.projection_weight, retain_graph=True
        )
        assert gradient.abs().max() == 0


def test_autocast_is_close_and_keeps_the_cell_exact():
    exact = make_values(UNEVEN, scale=0.5)
    expected = slow(exact, UNEVEN, CLIPS["free"])
    values = as_type(exact, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = LstmRecurrence.apply(*values, UNEVEN, CLIPS["free"])
    assert [part.dtype for part in found] == [torch.bfloat16, torch.bfloat16, torch.float32]
    # Bfloat16 has eight bits: one rounding is up to 0.4 %, and they add up over six steps.
    assert_same(found, expected, 0.02)
    found_gradients = gradients(found, values)
    assert all(gradient.dtype == torch.float32 for gradient in found_gradients)
    assert_same(found_gradients, gradients(expected, exact), 0.03)


OPTIONS = LstmOptions(
    DIM, PROJECTION_DIM, 1, cell_clip=0.3, proj_clip=0.2, use_skip_connections=True
)


@pytest.fixture
def lstm():
    torch.manual_seed(5)
    lstm = ProjectedLstm(INPUT_DIM, OPTIONS)
    torch.nn.init.normal_(lstm.bias)
    return lstm


@pytest.fixture
def calls(monkeypatch):
    """The calls of `LstmRecurrence.apply`."""
    seen = []
    apply = LstmRecurrence.apply
    monkeypatch.setattr(
        LstmRecurrence, "apply", staticmethod(lambda *args: seen.append(args) or apply(*args))
    )
    return seen


def test_learning_and_reading_give_the_same(lstm, calls):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    state = LstmState(torch.randn(6, PROJECTION_DIM), torch.randn(6, DIM))
    for first in (None, state):
        learned, learned_state = lstm(inputs, UNEVEN, first)
        with torch.no_grad():
            read, read_state = lstm(inputs, UNEVEN, first)
        assert_same([learned, *learned_state], [read, *read_state], 1e-6)
    assert len(calls) == 2


def test_a_frozen_lstm_reads_on_the_fast_path(lstm, calls):
    inputs = torch.randn(sum(EVEN), INPUT_DIM)
    lstm.requires_grad_(False)
    lstm(inputs, EVEN)
    assert not calls
    # Something before it learns.
    lstm(inputs.requires_grad_(), EVEN)
    assert len(calls) == 1


def test_weights_learn_though_the_bias_is_frozen(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    weights = [lstm.input.weight, lstm.recurrent.weight, lstm.projection.weight]

    def learned():
        outputs, state = lstm(inputs, UNEVEN)
        return torch.autograd.grad(outputs.sum() + state.cell.sum(), weights)

    expected = learned()
    lstm.bias.requires_grad_(False)
    assert_same(learned(), expected, 1e-5)


def test_the_hidden_one_on_the_forget_bias_is_there_when_learning(lstm):
    torch.nn.init.zeros_(lstm.bias)
    inputs = torch.randn(1, INPUT_DIM)
    cell = torch.full((1, DIM), 0.1)
    _, state = lstm(inputs, [1], LstmState(torch.zeros(1, PROJECTION_DIM), cell))
    i, f, _, g = (lstm.input(inputs) + 0).split(DIM, dim=1)
    expected = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
    torch.testing.assert_close(state.cell, expected.clamp(-0.3, 0.3))
