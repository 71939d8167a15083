"""
CUDA graphs and cuDNN: what no other backend has. Without a GPU, Triton's interpreter runs the
graphs' kernels, one launch after the other.
"""

import gc
import warnings
from weakref import WeakValueDictionary

import pytest
import torch

from elmo_plugin.modules import tuning
from elmo_plugin.modules.recurrent import step_graphs
from elmo_plugin.modules.recurrent.cells import LstmCell
from elmo_plugin.modules.recurrent.layer import recurrences
from elmo_plugin.modules.recurrent.scan import LayerCall
from tests.modules.recurrent.test_recurrence import (
    GPU,
    UNEVEN,
    Way,
    assert_same,
    gradients,
    make_values,
    only,
    run,
    slow,
)

CELL = LstmCell(0.3, 0.2)
GRAPH = Way("graph", CELL, True)


@pytest.fixture
def captured(monkeypatch):
    """The shapes of the graphs that run."""
    only(monkeypatch, "graph")
    monkeypatch.setattr(step_graphs, "_graphs", type(step_graphs._graphs)())
    monkeypatch.setattr(step_graphs, "_weights", WeakValueDictionary())
    runs = []
    run_graph = step_graphs.StepGraph.run
    monkeypatch.setattr(
        step_graphs.StepGraph, "run", lambda *args: runs.append(args[0].shape) or run_graph(*args)
    )
    yield runs
    assert runs


def assert_is_loop(sizes):
    exact, values = GRAPH.make(sizes)
    expected, found = slow(CELL, exact, sizes), run(CELL, values, sizes)
    assert_same(found, expected, 1e-5)
    assert_same(gradients(found, values), gradients(expected, exact), 1e-5)


def test_a_graph_serves_other_values_lengths_and_layers(captured):
    # Rounded up, both batches have twelve rows.
    for sizes in ([11, 3], [12, 7, 1], [11]):
        assert_is_loop(sizes)
    assert len(step_graphs._graphs) == 2 and len(captured) == 6


def test_a_second_forward_pass_leaves_the_first_its_gradients(captured):
    exact, values = GRAPH.make(UNEVEN)
    expected, found = slow(CELL, exact, UNEVEN), run(CELL, values, UNEVEN)
    run(CELL, values._replace(inputs=values.inputs.detach() * 2), UNEVEN)
    assert_same(found, expected, 1e-5)
    assert_same(gradients(found, values), gradients(expected, exact), 1e-5)


def test_two_directions_together_are_those_alone(captured):
    pair = [GRAPH.make(UNEVEN, scale=scale)[1] for scale in (1.0, 0.5)]
    with torch.no_grad():
        calls = [LayerCall(values.inputs, values.weights, values.state) for values in pair]
        together = recurrences(CELL, calls, UNEVEN)
        for (outputs, state), values in zip(together, pair):
            found = [part.cpu() for part in (outputs, *state)]
            assert_same(found, run(CELL, values, UNEVEN), 1e-6)
    assert [shape.num_layers for shape in captured] == [2, 1, 1]


def test_a_long_text_is_run_in_pieces(monkeypatch, captured):
    monkeypatch.setattr(step_graphs, "MAX_STEPS", 4)
    gates = 4 * GRAPH.make([1])[1].weights.hidden_dim(CELL)
    for most in (tuning.MAX_GPU_INPUT_GATES, 1, 10 * gates):
        monkeypatch.setattr(tuning, "MAX_GPU_INPUT_GATES", most)
        assert_is_loop([3] * 5 + [2, 1])
    # Forward in 2, 7 and 2 pieces, backward in 2.
    assert len(captured) == 2 + 7 + 2 + 3 * 2


def test_half_precision_is_close(captured):
    cell = LstmCell(3.0, 3.0)
    exact = make_values(cell, True, UNEVEN, starts=False, scale=0.5)
    with torch.no_grad():
        assert_same(
            run(cell, exact.to(GPU, torch.float16), UNEVEN), slow(cell, exact, UNEVEN), 0.005
        )
        with torch.autocast(GPU, dtype=torch.bfloat16):
            run(cell, exact.to(GPU, torch.float32), UNEVEN)
    assert [shape.dtype for shape in captured] == [torch.float16, torch.bfloat16]


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_a_device_that_is_not_the_current_one_is_used(captured):
    exact, values = GRAPH.make(UNEVEN)
    expected = slow(CELL, exact, UNEVEN)
    for device in ("cuda:0", "cuda:1"):
        moved = values.to(device)
        found = run(CELL, moved, UNEVEN)
        assert_same(found, expected, 1e-5)
        assert_same(gradients(found, moved), gradients(expected, exact), 1e-5)


def test_a_graph_made_in_inference_mode_serves_training(captured):
    with torch.inference_mode():
        run(CELL, GRAPH.make([3, 2])[1], [3, 2])
    assert_is_loop([3, 2])


def test_few_graphs_are_kept(monkeypatch, captured):
    monkeypatch.setattr(tuning, "MAX_GRAPHS", 3)
    for rows in (1, 2, 3, 4, 3, 2, 1):
        exact, values = GRAPH.make([rows])
        with torch.no_grad():
            assert_same(run(CELL, values, [rows]), slow(CELL, exact, [rows]), 1e-5)
    assert len(step_graphs._graphs) == 3
    # The buffers of weights are shared, and freed with the last graph that has them.
    assert len(step_graphs._weights) == 1
    step_graphs._graphs.clear()
    gc.collect()
    assert not step_graphs._weights


def test_cudnn_under_autocast_is_exact_and_its_weights_are_one_piece_of_memory(monkeypatch):
    only(monkeypatch, "cudnn")
    values = make_values(LstmCell(), False, UNEVEN).to(GPU, torch.float32)
    with warnings.catch_warnings():
        # Otherwise PyTorch warns, once, that it copies them each time.
        warnings.simplefilter("error")
        expected = run(LstmCell(), values, UNEVEN)
    with torch.autocast(GPU, torch.bfloat16):
        outputs, hidden, cell_state = run(LstmCell(), values, UNEVEN)
    assert outputs.dtype == hidden.dtype == torch.bfloat16
    assert torch.equal(cell_state, expected[2])
    assert torch.equal(outputs, expected[0].bfloat16())
