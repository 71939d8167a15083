from types import SimpleNamespace

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

import elmo_plugin.training  # noqa: F401


@pytest.fixture
def clock(monkeypatch):
    """Its `now` is the time in seconds."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("elmo_plugin.training.linear_decay.time", clock)
    return clock


def make(*rates, **settings):
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    optimizer = torch.optim.SGD(groups, lr=1.0)
    params = Params({"type": "elmo-linear-decay", **settings})
    return LearningRateScheduler.from_params(params, optimizer=optimizer), optimizer


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


def train(scheduler, clock, *seconds):
    """Batches that take so long."""
    for duration in seconds:
        clock.now += duration
        scheduler.step_batch()


def test_rates_fall_to_zero_over_the_time_given(clock):
    scheduler, optimizer = make(1.0, 0.1, minutes=2)
    # How long the start took is not known.
    train(scheduler, clock, 55.0)
    assert rates(optimizer) == [1.0, 0.1]
    train(scheduler, clock, 30.0)
    assert rates(optimizer) == pytest.approx([0.75, 0.075])
    train(scheduler, clock, 10.0, 20.0)
    assert rates(optimizer) == pytest.approx([0.5, 0.05])
    assert scheduler.progress == pytest.approx(0.5)
    train(scheduler, clock, 59.0)
    assert not scheduler.is_over
    train(scheduler, clock, 2.0)
    assert scheduler.is_over and rates(optimizer) == [0.0, 0.0]
    train(scheduler, clock, 100.0)
    assert scheduler.progress == 1.0 and rates(optimizer) == [0.0, 0.0]


def test_rates_rise_over_the_first_batches(clock):
    scheduler, optimizer = make(1.0, minutes=1, warmup_steps=4)
    found = []
    for _ in range(6):
        train(scheduler, clock, 0.0)
        found += rates(optimizer)
    assert found == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_validation_takes_no_time(clock):
    scheduler, _ = make(1.0, minutes=1)
    train(scheduler, clock, 0.0, 6.0)
    clock.now += 500.0
    scheduler.step(0.5)
    assert scheduler.progress == pytest.approx(0.1)
    train(scheduler, clock, 6.0)
    assert scheduler.progress == pytest.approx(0.2)


def test_epochs_of_one_batch_take_time_too(clock):
    scheduler, _ = make(1.0, minutes=1)
    for _ in range(11):
        train(scheduler, clock, 6.0)
        scheduler.step()
    assert scheduler.is_over


def test_a_recovered_run_continues_with_the_time_used(clock):
    scheduler, _ = make(1.0, minutes=1, warmup_steps=100)
    train(scheduler, clock, 0.0, 10.0, 20.0)
    state = scheduler.state_dict()
    clock.now = 5.0
    other, optimizer = make(1.0, minutes=1, warmup_steps=100)
    other.load_state_dict(state)
    train(other, clock, 70.0)
    assert other.progress == pytest.approx(0.5)
    assert rates(optimizer) == pytest.approx([0.5 * 4 / 100])


def test_rates_fall_to_zero_over_the_updates_given(clock):
    scheduler, optimizer = make(1.0, 0.1, steps=4)
    found = []
    for seconds in (0.0, 500.0, 1.0):
        train(scheduler, clock, seconds)
        found += rates(optimizer)
    assert found == pytest.approx([0.75, 0.075, 0.5, 0.05, 0.25, 0.025])
    assert not scheduler.is_over
    other, optimizer = make(1.0, 0.1, steps=4)
    other.load_state_dict(scheduler.state_dict())
    train(other, clock, 1.0)
    assert other.is_over and rates(optimizer) == [0.0, 0.0]


@pytest.mark.parametrize(
    "budgets, found", [({}, "neither"), ({"minutes": 5, "steps": 100}, "both")]
)
def test_either_minutes_or_steps_are_needed(budgets, found):
    with pytest.raises(ConfigurationError, match=f"either minutes or steps, found {found}"):
        make(1.0, **budgets)


@pytest.mark.parametrize("budget", ["minutes", "steps"])
def test_a_budget_above_zero_and_no_negative_warm_up_are_needed(budget):
    with pytest.raises(ConfigurationError, match="minutes or steps above 0, .* found 0, 0 and 0"):
        make(1.0, **{budget: 0})
    with pytest.raises(ConfigurationError, match="warmup_steps of at least 0 .* found 5, -1 and 0"):
        make(1.0, minutes=5, warmup_steps=-1)


@pytest.mark.parametrize("end_factor", [-0.1, 1.1])
def test_an_end_that_is_no_fraction_is_refused(end_factor):
    with pytest.raises(ConfigurationError, match=f"found 5, 0 and {end_factor}"):
        make(1.0, minutes=5, end_factor=end_factor)


def test_rates_may_end_at_a_fraction(clock):
    scheduler, optimizer = make(1.0, minutes=1, end_factor=0.5)
    train(scheduler, clock, 0.0, 30.0)
    assert rates(optimizer) == pytest.approx([0.75])
    train(scheduler, clock, 31.0)
    assert scheduler.is_over and rates(optimizer) == pytest.approx([0.5])
