"""
LSTM and GRU layers of PyTorch's own functions against a loop over tokens: on a GPU, and, since the
functions are the same, on the CPU.
"""

import warnings

import pytest
import torch

from elmo_plugin.modules.recurrent import cudnn
from elmo_plugin.modules.recurrent import recurrence as recurrence_module
from elmo_plugin.modules.recurrent.cells.gru import GruCell
from elmo_plugin.modules.recurrent.cells.highway_lstm import HighwayLstmCell
from elmo_plugin.modules.recurrent.cells.lstm import LstmCell
from elmo_plugin.modules.recurrent.scan import LayerCall, RecurrentState
from elmo_plugin.modules.recurrent.weights import Weights
from tests.modules.recurrent.test_recurrence import (
    DIM,
    SHAPES,
    UNEVEN,
    Values,
    assert_same,
    gradients,
    make_values,
    run,
    slow,
)

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request, monkeypatch):
    """Where PyTorch's functions are called, without TF32."""
    monkeypatch.setattr(cudnn, "_DEVICE", request.param)
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield request.param


@pytest.fixture
def called(monkeypatch):
    """The cells for which PyTorch's functions were called."""
    cells = []
    monkeypatch.setattr(
        recurrence_module,
        "cudnn_recurrences",
        lambda cell, *rest: cells.append(cell) or cudnn.cudnn_recurrences(cell, *rest),
    )
    return cells


def moved(values: Values, device: str, dtype: torch.dtype = torch.float64) -> Values:
    def move(part):
        return part if part is None else part.detach().to(device, dtype).requires_grad_()

    weights = Weights(*map(move, values.weights))
    return Values(move(values.inputs), weights, move(values.hidden), move(values.cell_state))


@pytest.mark.parametrize("batch_sizes", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "cell, starts", [(LstmCell(), True), (LstmCell(), False), (GruCell(), False)]
)
@pytest.mark.parametrize("dtype, most", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_results_and_gradients_are_those_of_a_loop(
    device, called, cell, starts, batch_sizes, dtype, most
):
    values = make_values(cell, False, batch_sizes, starts)
    expected = slow(cell, values, batch_sizes)
    there = moved(values, device, dtype)
    found = run(cell, there, batch_sizes)
    assert called == [cell] and found[0].dtype == dtype
    assert_same([part.cpu() for part in found], expected, most)
    totals = gradients([part.cpu() for part in found], there)
    assert_same([part.cpu() for part in totals], gradients(expected, values), most)
    with torch.no_grad():
        assert_same([part.cpu() for part in run(cell, there, batch_sizes)], expected, most)


def test_no_other_layer_is_computed_by_them(device):
    def can(cell, projects=False, starts=False, dtype=torch.float32):
        values = moved(make_values(cell, projects, UNEVEN, starts), device, dtype)
        return cudnn.can_call_cudnn(cell, [LayerCall(values.inputs, values.weights, values.state)])

    assert can(LstmCell()) and can(LstmCell(None, 0.2)) and can(GruCell())
    assert not can(LstmCell(0.3)) and not can(LstmCell(), projects=True)
    assert not can(HighwayLstmCell()) and not can(GruCell(), starts=True)
    assert not can(LstmCell(), dtype=torch.bfloat16)


def test_a_sentence_without_a_word_keeps_its_state(device):
    values = moved(make_values(LstmCell(), False, [4], True), device)
    inputs = values.inputs[:2]
    # The same state for all sentences, in the memory of one.
    state = RecurrentState(*(part.detach()[:1].expand(4, -1) for part in values.state))
    calls = [LayerCall(inputs, values.weights, state)]
    ((_, found),) = cudnn.cudnn_recurrences(LstmCell(), calls, [2])
    assert torch.equal(found.cell[2:], state.cell[2:]) and found.hidden.shape == (4, DIM)
    assert torch.equal(found.hidden[2:], state.hidden[2:])
    assert not torch.equal(found.cell[:2], state.cell[:2])


def test_autocast_gives_its_type_and_exact_cell_states(device, called):
    values = moved(make_values(LstmCell(), False, UNEVEN), device, torch.float32)
    expected = run(LstmCell(), values, UNEVEN)
    with torch.autocast(device, torch.bfloat16):
        outputs, hidden, cell_state = run(LstmCell(), values, UNEVEN)
    assert len(called) == 2 and outputs.dtype == hidden.dtype == torch.bfloat16
    assert torch.equal(cell_state, expected[2])
    assert torch.equal(outputs, expected[0].bfloat16())


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU")
def test_weights_are_one_piece_of_memory():
    """Otherwise PyTorch warns, once, that it copies them each time."""
    values = moved(make_values(LstmCell(), False, UNEVEN), "cuda", torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(LstmCell(), values, UNEVEN)
