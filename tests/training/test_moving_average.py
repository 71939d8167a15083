"""Averages of weights, and what becomes of them when a run is killed and recovered."""

import torch
from allennlp.training.moving_average import ExponentialMovingAverage

from elmo_plugin.modules.packed_linear import PackedLinear
from elmo_plugin.training.recoverable_trainer import _store_averages_only


def test_allennlps_average_is_restored_without_its_parameters_and_on_its_device():
    parameter = torch.nn.Parameter(torch.tensor([1.0]))
    average = ExponentialMovingAverage([("x", parameter)])
    _store_averages_only(average)
    assert average.state_dict().keys() == {"shadows"}
    average._shadows["x"] = average._shadows["x"].double()
    average.load_state_dict({"shadows": {"x": torch.tensor([3.0])}})
    assert average._parameters[0][1] is parameter
    # Not that of the checkpoint, which is loaded to the CPU.
    assert average._shadows["x"].dtype == torch.float64 and average._shadows["x"] == 3.0


def test_layers_that_keep_a_copy_of_a_weight_notice_the_average():
    layer, inputs = PackedLinear(300, 900).eval(), torch.randn(8, 300)
    average = ExponentialMovingAverage(list(layer.named_parameters()))
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
