import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

import elmo_plugin.training  # noqa: F401


def make(*rates, **settings):
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    params = Params({"type": "elmo-decay-by-batches", **settings})
    return LearningRateScheduler.from_params(params, optimizer=optimizer), optimizer


def train(scheduler, optimizer, numbers):
    """The rate of the first group at each update."""
    rates = []
    for number in numbers:
        # AllenNLP's trainer calls this before the update, with its number from 1.
        scheduler.step_batch(number)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


def test_rates_fall_after_a_number_of_batches_not_of_epochs():
    scheduler, optimizer = make(1.0, 0.1, factor=0.5, num_batches=3)
    assert train(scheduler, optimizer, [1, 2]) == [1.0, 1.0]
    scheduler.step()
    assert train(scheduler, optimizer, range(3, 8)) == [1.0, 0.5, 0.5, 0.5, 0.25]
    assert optimizer.param_groups[1]["lr"] == 0.025


def test_a_restored_schedule_continues():
    scheduler, optimizer = make(1.0, factor=0.5, num_batches=2)
    train(scheduler, optimizer, [1, 2, 3])
    again, its_optimizer = make(1.0, factor=0.5, num_batches=2)
    its_optimizer.load_state_dict(optimizer.state_dict())
    again.load_state_dict(scheduler.state_dict())
    assert train(again, its_optimizer, [4, 5, 6]) == [0.5, 0.25, 0.25]


@pytest.mark.parametrize("factor, num_batches", [(0.0, 1), (1.5, 1), (0.5, 0)])
def test_an_impossible_schedule_is_refused(factor, num_batches):
    with pytest.raises(ConfigurationError, match=f"found {factor} and {num_batches}"):
        make(1.0, factor=factor, num_batches=num_batches)
