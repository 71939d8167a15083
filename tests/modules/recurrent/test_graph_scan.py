"""
The CUDA graphs of LSTM layers against a plain loop. Without a GPU, Triton's interpreter runs the
kernels, one launch after the other.
"""

import gc
from weakref import WeakValueDictionary

import pytest
import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.recurrent import graph_scan, step_graphs
from elmo_plugin.modules.recurrent import recurrence as recurrence_module
from elmo_plugin.modules.recurrent.cells.lstm import LstmCell
from elmo_plugin.modules.recurrent.recurrence import recurrences
from elmo_plugin.modules.recurrent.scan import LayerCall
from elmo_plugin.modules.recurrent.weights import Weights
from tests.modules.recurrent import test_recurrence as loop
from tests.modules.recurrent.reference import reference_recurrence
from tests.modules.recurrent.test_recurrence import (
    LAYERS,
    SHAPES,
    UNEVEN,
    Values,
    assert_same,
    gradients,
    run,
    slow,
)

pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
ON_GPU = torch.cuda.is_available()
LSTMS = {name: layer for name, layer in LAYERS.items() if type(layer[0]) is LstmCell}
every_lstm = pytest.mark.parametrize("cell, projects", LSTMS.values(), ids=LSTMS)


@pytest.fixture(autouse=True)
def captured(monkeypatch):
    """Counts the runs of graphs. Widths are those that graphs take."""
    monkeypatch.setattr(loop, "DIM", 16)
    monkeypatch.setattr(loop, "PROJECTION_DIM", 8)
    monkeypatch.setattr(step_graphs, "_graphs", type(step_graphs._graphs)())
    monkeypatch.setattr(step_graphs, "_weights", WeakValueDictionary())
    # On a GPU, cuDNN would compute layers without a projection and a clip.
    monkeypatch.setattr(recurrence_module, "can_call_cudnn", lambda *_: False)
    if not ON_GPU:
        monkeypatch.setattr(graph_scan, "_DEVICE", "cpu")
        monkeypatch.setattr(recurrence_module, "can_scan", lambda *_: False)
        monkeypatch.setattr(recurrence_module, "is_small", lambda *_: False)
    runs = []
    run_graph = step_graphs.StepGraph.run
    monkeypatch.setattr(
        step_graphs.StepGraph, "run", lambda *args: runs.append(args[0].shape) or run_graph(*args)
    )
    yield runs
    assert runs


def make_values(cell, projects, sizes, starts=True, scale=1.0):
    """In float64, and in float32 where graphs run."""
    exact = loop.make_values(cell, projects, sizes, starts, scale)
    return exact, there(exact)


def there(values: Values, device: str = "") -> Values:
    device = device or graph_scan._DEVICE

    def move(part):
        return None if part is None else part.detach().float().to(device).requires_grad_()

    return Values(
        move(values.inputs),
        Weights(*map(move, values.weights)),
        move(values.hidden),
        move(values.cell_state),
    )


def back(parts):
    return [part.cpu() for part in parts]


def gradients_there(results, values):
    """`gradients`, whose random weights are on the CPU."""
    return back(gradients([part.cpu() for part in results], values))


@pytest.mark.parametrize("starts", [True, False], ids=["carried state", "zeros"])
@pytest.mark.parametrize("sizes", SHAPES.values(), ids=SHAPES)
@every_lstm
def test_values_and_gradients_are_those_of_a_loop(cell, projects, sizes, starts):
    exact, values = make_values(cell, projects, sizes, starts)
    expected = slow(cell, exact, sizes)
    found = run(cell, values, sizes)
    assert all(part.dtype == torch.float32 for part in found)
    assert_same(back(found), expected, 1e-5)
    assert_same(gradients_there(found, values), gradients(expected, exact), 1e-5)
    with torch.no_grad():
        assert_same(back(run(cell, values, sizes)), expected, 1e-5)


def test_a_graph_serves_other_values_lengths_and_layers(captured):
    cell = LstmCell(0.3, 0.2)
    # Rounded up, both batches have twelve rows.
    for sizes in ([11, 3, 3], [12, 12, 12, 12, 12, 7, 1], [11]):
        exact, values = make_values(cell, True, sizes)
        expected = slow(cell, exact, sizes)
        found = run(cell, values, sizes)
        assert_same(back(found), expected, 1e-5)
        assert_same(gradients_there(found, values), gradients(expected, exact), 1e-5)
    assert len(step_graphs._graphs) == 2 and len(captured) == 6


def test_a_second_forward_pass_leaves_the_first_its_gradients():
    cell = LstmCell(0.3, 0.2)
    exact, values = make_values(cell, True, UNEVEN)
    expected = slow(cell, exact, UNEVEN)
    found = run(cell, values, UNEVEN)
    run(cell, values._replace(inputs=values.inputs.detach() * 2), UNEVEN)
    assert_same(back(found), expected, 1e-5)
    assert_same(gradients_there(found, values), gradients(expected, exact), 1e-5)


def test_two_directions_together_are_those_alone(captured):
    cell = LstmCell(0.3, 0.2)
    pair = [make_values(cell, True, UNEVEN, scale=scale)[1] for scale in (1.0, 0.5)]
    with torch.no_grad():
        calls = [LayerCall(values.inputs, values.weights, values.state) for values in pair]
        together = recurrences(cell, calls, UNEVEN)
        for (outputs, state), values in zip(together, pair):
            assert_same(back((outputs, *state)), back(run(cell, values, UNEVEN)), 1e-6)
    assert [shape.num_layers for shape in captured] == [2, 1, 1]


def test_a_long_text_is_run_in_pieces(monkeypatch, captured):
    monkeypatch.setattr(step_graphs, "MAX_STEPS", 8)
    cell = LstmCell(0.3, 0.2)
    sizes = [3] * 17 + [2, 1]
    for most in (tuning.MAX_GPU_INPUT_GATES, 1, 10 * 64):
        monkeypatch.setattr(tuning, "MAX_GPU_INPUT_GATES", most)
        exact, values = make_values(cell, True, sizes)
        expected = slow(cell, exact, sizes)
        found = run(cell, values, sizes)
        assert_same(back(found), expected, 1e-5)
        assert_same(gradients_there(found, values), gradients(expected, exact), 1e-5)
    # Forward in 3, 19 and 6 pieces, backward in 3.
    assert len(captured) == 3 + 19 + 6 + 3 * 3


@pytest.mark.parametrize("sizes", [[3, 2], [2], [2, 0], [0]], ids=str)
def test_a_state_may_have_rows_of_sentences_without_tokens(sizes):
    cell = LstmCell(0.3, 0.2)
    _, values = make_values(cell, True, [4])
    inputs = torch.randn(sum(sizes), loop.INPUT_DIM, device=values.inputs.device)
    values = values._replace(inputs=inputs.requires_grad_())
    found, expected = (
        run(cell, values, sizes, function) for function in (loop.recurrence, reference_recurrence)
    )
    assert_same(back(found), back(expected), 1e-5)
    for one, other in zip(gradients_there(found, values), gradients_there(expected, values)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_autocast_is_close_and_keeps_the_cell_state_in_float32(captured):
    cell = LstmCell(3.0, 3.0)
    exact, values = make_values(cell, True, UNEVEN, scale=0.5)
    expected = slow(cell, exact, UNEVEN)
    with torch.autocast(graph_scan._DEVICE, dtype=torch.bfloat16):
        found = run(cell, values, UNEVEN)
        with torch.no_grad():
            read = run(cell, values, UNEVEN)
    assert [part.dtype for part in found] == [torch.bfloat16, torch.bfloat16, torch.float32]
    assert_same(back(found), expected, 0.02)
    assert_same(back(read), back(found), 0.0)
    found_gradients = gradients_there(found, values)
    assert all(gradient.dtype == torch.float32 for gradient in found_gradients)
    assert_same(found_gradients, gradients(expected, exact), 0.03)
    assert {shape.dtype for shape in captured} == {torch.bfloat16}


@pytest.mark.parametrize("clip", [0.7, 0.3])
def test_a_clip_that_bfloat16_cannot_hold_stops_gradients_too(clip):
    _, values = make_values(LstmCell(), True, [3], scale=5.0)
    with torch.autocast(graph_scan._DEVICE, dtype=torch.bfloat16):
        outputs, _, _ = run(LstmCell(None, clip), values, [3])
    is_clipped = outputs.abs() == outputs.abs().max()
    assert is_clipped.sum() > 4
    (gradient,) = torch.autograd.grad((outputs * is_clipped).sum(), values.weights.projection)
    assert gradient.abs().max() == 0


def test_nan_is_passed_on_to_its_sentence_only():
    _, values = make_values(LstmCell(3.0, 3.0), True, UNEVEN)
    with torch.no_grad():
        values.inputs[0] = float("nan")
        outputs, _, _ = run(LstmCell(3.0, 3.0), values, UNEVEN)
    firsts = [sum(UNEVEN[:step]) for step in range(6)]
    assert outputs[firsts].isnan().all()
    outputs[firsts] = 0.0
    assert outputs.isfinite().all()


def test_tiny_hidden_states_keep_their_digits():
    cell = LstmCell()
    exact, values = make_values(cell, True, [3, 3], starts=False, scale=1e-3)
    with torch.no_grad():
        found = run(cell, values, [3, 3])
    assert found[0].abs().max() < 1e-4
    assert_same(back(found), slow(cell, exact, [3, 3]), 2e-7)


def test_a_frozen_part_changes_no_other_gradient():
    cell = LstmCell(0.3, 0.2)
    exact, values = make_values(cell, True, UNEVEN)
    weights = values.weights._replace(bias=values.weights.bias.detach())
    frozen = values._replace(inputs=values.inputs.detach(), weights=weights)
    found = run(cell, frozen, UNEVEN)
    gradient = gradients([part.cpu() for part in found], values)[1]
    assert_same(back([gradient]), [gradients(slow(cell, exact, UNEVEN), exact)[1]], 1e-5)


def test_half_precision_is_close():
    cell = LstmCell(3.0, 3.0)
    exact, values = make_values(cell, True, UNEVEN, scale=0.5)
    parts = [part.detach().half() for part in values.weights]
    halves = Values(values.inputs.detach().half(), Weights(*parts), None, None)
    exact = exact._replace(hidden=None, cell_state=None)
    assert_same(back(run(cell, halves, UNEVEN)), slow(cell, exact, UNEVEN), 0.005)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_device_that_is_not_the_current_one_is_used():
    cell = LstmCell(0.3, 0.2)
    exact, values = make_values(cell, True, UNEVEN)
    expected = slow(cell, exact, UNEVEN)
    for device in ("cuda:0", "cuda:1"):
        moved = there(values, device)
        found = run(cell, moved, UNEVEN)
        assert found[0].device == torch.device(device)
        assert_same(back(found), expected, 1e-5)
        assert_same(gradients_there(found, moved), gradients(expected, exact), 1e-5)


def test_huge_gates_saturate_without_overflow():
    cell = LstmCell()
    _, values = make_values(cell, False, [4, 4])
    values = values._replace(inputs=(values.inputs.detach() * 1e4).requires_grad_())
    results = run(cell, values, [4, 4])
    expected = run(cell, values, [4, 4], reference_recurrence)
    torch.testing.assert_close(results[0], expected[0], rtol=1e-3, atol=1e-3)
    assert all(gradient.isfinite().all() for gradient in gradients_there(results, values))


def test_a_graph_made_in_inference_mode_serves_training():
    cell = LstmCell(0.3, 0.2)
    exact, values = make_values(cell, True, [3, 2])
    with torch.inference_mode():
        run(cell, values, [3, 2])
    found = run(cell, values, [3, 2])
    expected = slow(cell, exact, [3, 2])
    assert_same(gradients_there(found, values), gradients(expected, exact), 1e-5)


def test_gradients_at_an_odd_address_are_read():
    cell = LstmCell(0.3, 0.2)
    exact, values = make_values(cell, True, [3, 2])
    weights = torch.randn(5 * 8 + 1, dtype=torch.float64)
    expected = slow(cell, exact, [3, 2])
    found = run(cell, values, [3, 2])
    of_loop = torch.autograd.grad((expected[0] * weights[1:].view(5, 8)).sum(), exact.inputs)
    odd = weights.float().to(values.inputs.device)[1:].view(5, 8)
    of_graph = torch.autograd.grad(found[0], values.inputs, odd)
    assert_same(back(of_graph), of_loop, 1e-5)


def test_few_graphs_are_kept(monkeypatch):
    monkeypatch.setattr(tuning, "MAX_GRAPHS", 3)
    for rows in (1, 2, 3, 4, 3, 2, 1):
        exact, values = make_values(LstmCell(), True, [rows])
        with torch.no_grad():
            found = run(LstmCell(), values, [rows])
        assert_same(back(found), slow(LstmCell(), exact, [rows]), 1e-5)
    assert len(step_graphs._graphs) == 3
    # The buffers of weights are shared, and freed with the last graph that has them.
    assert len(step_graphs._weights) == 1
    step_graphs._graphs.clear()
    gc.collect()
    assert not step_graphs._weights


@pytest.mark.parametrize(
    "rows, most", [(1, 1), (8, 8), (9, 10), (16, 16), (17, 20), (33, 40), (1000, 1024)]
)
def test_numbers_of_sentences_are_rounded_up_by_a_quarter_at_most(captured, rows, most):
    captured.append("nothing is run")
    assert graph_scan._rounded(rows) == most
