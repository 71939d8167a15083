"""`RecurrentLayer` with and without gradients, and a cell defined in this file alone."""

import pytest
import torch

from elmo_plugin.modules.recurrent.cells import Cell, GruCell, LstmCell
from elmo_plugin.modules.recurrent.layer import RecurrentLayer
from elmo_plugin.modules.recurrent.scan import RecurrentState
from tests.modules.recurrent.test_recurrence import Values, assert_same, slow

INPUT_DIM, DIM, PROJECTION_DIM = 5, 7, 3
# Sentences of 6, 6, 4, 4, 1 and 1 tokens.
UNEVEN = [6, 4, 4, 4, 2, 2]


@pytest.fixture
def lstm():
    torch.manual_seed(5)
    lstm = RecurrentLayer(
        LstmCell(0.3, 0.2, forget_bias=1.0), INPUT_DIM, DIM, PROJECTION_DIM
    ).eval()
    torch.nn.init.normal_(lstm.bias)
    return lstm


@pytest.fixture
def inputs():
    return torch.randn(sum(UNEVEN), INPUT_DIM)


def test_a_frozen_lstm_stays_packed_and_passes_on_gradients(lstm, inputs):
    lstm.requires_grad_(False)
    outputs, _ = lstm(inputs, UNEVEN)
    packed = dict(lstm.recurrent._copies)
    assert not outputs.requires_grad
    lstm(inputs, UNEVEN)
    assert packed and lstm.recurrent._copies == packed
    assert lstm(inputs.requires_grad_(), UNEVEN)[0].requires_grad
    state = RecurrentState(torch.zeros(6, PROJECTION_DIM), torch.zeros(6, DIM).requires_grad_())
    outputs, _ = lstm(inputs.detach(), UNEVEN, state)
    (gradient,) = torch.autograd.grad(outputs.sum(), state.cell)
    assert gradient.norm() > 0


@pytest.mark.parametrize("gradients", [True, False])
def test_the_constant_forget_bias_is_added(lstm, gradients):
    torch.nn.init.zeros_(lstm.bias)
    inputs = torch.randn(1, INPUT_DIM)
    cell = torch.full((1, DIM), 0.1)
    with torch.set_grad_enabled(gradients):
        _, state = lstm(inputs, [1], RecurrentState(torch.zeros(1, PROJECTION_DIM), cell))
    i, f, g, _ = (lstm.input(inputs) + 0).split(DIM, dim=1)
    expected = torch.sigmoid(f + 1) * cell + torch.sigmoid(i) * torch.tanh(g)
    torch.testing.assert_close(state.cell, expected.clamp(-0.3, 0.3))


def test_the_state_of_a_bfloat16_layer_has_its_type(lstm, inputs):
    with torch.no_grad():
        expected, _ = lstm(inputs, UNEVEN)
        outputs, state = lstm.bfloat16()(inputs.bfloat16(), UNEVEN)
        again, _ = lstm(inputs.bfloat16(), UNEVEN, state)
    assert {outputs.dtype, *(part.dtype for part in state), again.dtype} == {torch.bfloat16}
    assert_same([outputs.float()], [expected], 0.02)


def test_copies_of_the_weights_are_cached_without_gradients_only(lstm):
    layers = (lstm.input, lstm.recurrent, lstm.projection)
    inputs = torch.randn(2, INPUT_DIM)
    with torch.no_grad():
        lstm.train()(inputs, [1, 1])
        assert not any(layer._copies for layer in layers)
        lstm.eval()(inputs, [1, 1])
    assert all(layer._copies for layer in layers)
    lstm(inputs, [1, 1])
    assert not any(layer._copies for layer in layers)


def test_initial_values_are_drawn_gate_by_gate_in_the_order_of_the_cell(lstm):
    gates = lstm.gates("recurrent")
    assert list(gates) == ["input", "forget", "output", "candidate"]
    gates["output"].data.fill_(3.0)
    assert (lstm.recurrent.weight[3 * DIM :] == 3.0).all()
    assert (lstm.recurrent.weight[: 3 * DIM] != 3.0).all()


class MinimalCell(Cell):
    """A recurrent layer with a single gate: a new cell needs nothing but its formula."""

    gates = ("update",)

    def formula(self, gates, cell_state):
        """See `Cell`."""
        cell_state = gates.tanh() + 0.5 * cell_state
        return cell_state, cell_state


class SquaredLstm(LstmCell):
    """Another formula of the same gates, which the kernel does not compute."""

    def formula(self, gates, cell_state):
        """See `Cell`."""
        cell_state, output = super().formula(gates, cell_state)
        return cell_state, output.square()


@pytest.mark.parametrize("cell", [MinimalCell(), SquaredLstm()])
def test_any_formula_is_computed(inputs, cell):
    layer = RecurrentLayer(cell, INPUT_DIM, DIM)
    outputs, state = layer(inputs, UNEVEN)
    expected, *expected_state = slow(cell, Values(inputs, layer.weights()), UNEVEN)
    assert_same([outputs, *state], [expected, *expected_state], 1e-6)
    found = torch.autograd.grad(outputs.square().sum(), list(layer.parameters()))
    wanted = torch.autograd.grad(expected.square().sum(), list(layer.parameters()))
    assert_same(found, wanted, 1e-5)


def test_a_cell_that_inherits_its_formula_has_the_kernel_too():
    class NamedGru(GruCell):
        """The same formula."""

    for name in ("kernel", "num_recurrent_gates", "num_input_gates", "draw_order"):
        assert getattr(NamedGru, name) == getattr(GruCell, name)
