"""Averages of weights, and what becomes of them when a run is killed and recovered."""

import pytest
import torch
from allennlp.training.moving_average import ExponentialMovingAverage

from elmo_plugin.modules.packed_linear import PackedLinear
from elmo_plugin.training import RecoverableMovingAverage
from elmo_plugin.training.moving_average import make_recoverable


def test_the_average_is_that_of_the_formula():
    parameter = torch.nn.Parameter(torch.tensor([1.0]))
    average, expected = RecoverableMovingAverage([("x", parameter)], decay=0.6), 1.0
    for step, value in enumerate([3.0, -2.0, 5.0, 4.0, 1.0, 0.0, 7.0], start=1):
        with torch.no_grad():
            parameter.fill_(value)
        average.apply(step)
        decay = min(0.6, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
        assert average.state_dict()["shadows"]["x"].item() == pytest.approx(expected)
    average.assign_average_value()
    assert parameter.item() == pytest.approx(expected)
    average.restore()
    assert parameter.item() == 7.0


def test_allennlps_average_is_restored_without_its_parameters_and_on_its_device():
    parameter = torch.nn.Parameter(torch.tensor([1.0]))
    average = ExponentialMovingAverage([("x", parameter)])
    make_recoverable(average)
    assert average.state_dict().keys() == {"shadows"}
    average._shadows["x"] = average._shadows["x"].double()
    average.load_state_dict({"shadows": {"x": torch.tensor([3.0])}})
    assert average._parameters[0][1] is parameter
    # Not that of the checkpoint, which is loaded to the CPU.
    assert average._shadows["x"].dtype == torch.float64 and average._shadows["x"] == 3.0


def test_layers_that_keep_a_copy_of_a_weight_notice_the_average():
    layer, inputs = PackedLinear(300, 900).eval(), torch.randn(8, 300)
    average = RecoverableMovingAverage(list(layer.named_parameters()))
    for _ in range(2):
        with torch.no_grad():
            before = layer(inputs)
            layer.weight.add_(1.0)
            average.assign_average_value()
            torch.testing.assert_close(layer(inputs), before)
            average.restore()
            assert not torch.allclose(layer(inputs), before, atol=1.0)
            layer.weight.sub_(1.0)
            layer.eval()
