"""`ProjectedLstm` while it learns and while it only reads."""

import pytest
import torch

from elmo_plugin.bilm import projected_lstm
from elmo_plugin.bilm.options import LstmOptions
from elmo_plugin.bilm.projected_lstm import LstmState, ProjectedLstm
from tests.bilm.oracle import relative_error

INPUT_DIM, DIM, PROJECTION_DIM = 5, 7, 3
# Sentences of 6, 6, 4, 4, 1 and 1 tokens.
UNEVEN = [6, 4, 4, 4, 2, 2]
OPTIONS = LstmOptions(
    DIM, PROJECTION_DIM, 1, cell_clip=0.3, proj_clip=0.2, use_skip_connections=True
)


@pytest.fixture
def lstm():
    torch.manual_seed(5)
    lstm = ProjectedLstm(INPUT_DIM, OPTIONS)
    torch.nn.init.normal_(lstm.bias)
    return lstm


def assert_same(found, expected, most):
    for one, other in zip(found, expected, strict=True):
        assert relative_error(one, other) < most


def test_learning_and_reading_give_the_same(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    state = LstmState(torch.randn(6, PROJECTION_DIM), torch.randn(6, DIM))
    for first in (None, state):
        learned, learned_state = lstm(inputs, UNEVEN, first)
        with torch.no_grad():
            read, read_state = lstm(inputs, UNEVEN, first)
        assert learned.requires_grad and not read.requires_grad
        assert_same([learned, *learned_state], [read, *read_state], 1e-6)


def test_a_frozen_lstm_reads_with_weights_that_stay_packed(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    lstm.requires_grad_(False)
    outputs, _ = lstm(inputs, UNEVEN)
    packed = lstm.recurrent._packed
    assert not outputs.requires_grad
    lstm(inputs, UNEVEN)
    assert lstm.recurrent._packed is packed
    # Something before it learns.
    assert lstm(inputs.requires_grad_(), UNEVEN)[0].requires_grad


def test_a_frozen_lstm_passes_on_the_gradient_of_its_first_state(lstm):
    lstm.requires_grad_(False)
    inputs = torch.randn(6, INPUT_DIM)
    state = LstmState(torch.zeros(6, PROJECTION_DIM), torch.zeros(6, DIM).requires_grad_())
    outputs, _ = lstm(inputs, [6], state)
    (gradient,) = torch.autograd.grad(outputs.sum(), state.cell)
    assert gradient.norm() > 0


def test_a_weight_changed_between_learning_and_reading_is_seen(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    with torch.no_grad():
        lstm(inputs, UNEVEN)
    lstm(inputs, UNEVEN)
    # As a fused optimizer does it, without a trace.
    for layer in (lstm.input, lstm.recurrent, lstm.projection):
        layer.weight.data.mul_(0.5)
    expected, _ = lstm(inputs, UNEVEN)
    with torch.no_grad():
        assert_same([lstm(inputs, UNEVEN)[0]], [expected], 1e-6)


def test_weights_learn_though_the_bias_is_frozen(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    weights = [lstm.input.weight, lstm.recurrent.weight, lstm.projection.weight]

    def learned():
        outputs, state = lstm(inputs, UNEVEN)
        return torch.autograd.grad(outputs.sum() + state.cell.sum(), weights)

    expected = learned()
    lstm.bias.requires_grad_(False)
    assert_same(learned(), expected, 1e-5)


@pytest.mark.parametrize("learns", [True, False], ids=["learning", "reading"])
def test_the_hidden_one_on_the_forget_bias_is_there(lstm, learns):
    torch.nn.init.zeros_(lstm.bias)
    inputs = torch.randn(1, INPUT_DIM)
    cell = torch.full((1, DIM), 0.1)
    with torch.set_grad_enabled(learns):
        _, state = lstm(inputs, [1], LstmState(torch.zeros(1, PROJECTION_DIM), cell))
    i, f, _, g = (lstm.input(inputs) + 0).split(DIM, dim=1)
    expected = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
    torch.testing.assert_close(state.cell, expected.clamp(-0.3, 0.3))


def test_memory_of_a_bfloat16_lstm_is_carried_in_its_own_type(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    with torch.no_grad():
        expected, _ = lstm(inputs, UNEVEN)
        outputs, state = lstm.bfloat16()(inputs.bfloat16(), UNEVEN)
        again, _ = lstm(inputs.bfloat16(), UNEVEN, state)
    assert {outputs.dtype, *(part.dtype for part in state), again.dtype} == {torch.bfloat16}
    assert_same([outputs.float()], [expected], 0.02)


def test_autocast_is_followed_when_reading_too(lstm):
    inputs = torch.randn(sum(UNEVEN), INPUT_DIM)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        learned, _ = lstm(inputs, UNEVEN)
        with torch.no_grad():
            read, _ = lstm(inputs, UNEVEN)
    assert read.dtype == torch.bfloat16
    assert torch.equal(learned, read)


def test_a_ready_product_is_used_for_reading_only(lstm, monkeypatch):
    seen = []
    recur = projected_lstm.recur
    monkeypatch.setattr(
        projected_lstm, "recur", lambda *args: seen.append(args[-1]) or recur(*args)
    )
    used = []
    for layer in (lstm.input, lstm.recurrent, lstm.projection):
        layer.register_forward_hook(lambda *_: used.append(1))
    inputs = torch.randn(2, INPUT_DIM)
    lstm(inputs, [1, 1])
    assert len(seen) == 1 and not used
    with torch.no_grad():
        lstm(inputs, [1, 1])
    # One chunk of inputs, one step after the first, two projections.
    assert len(used) == 4
