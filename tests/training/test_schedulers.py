"""Learning rates, step for step, and after a recovery."""

from types import SimpleNamespace
from typing import List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.learning_rate_schedulers import LearningRateScheduler

import elmo_plugin.training  # noqa: F401


def make_optimizer(*rates) -> torch.optim.Optimizer:
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate} for rate in rates]
    return torch.optim.SGD(groups, lr=1.0)


def make(name: str, optimizer=None, **settings) -> LearningRateScheduler:
    params = Params({"type": f"elmo-{name}", **settings})
    return LearningRateScheduler.from_params(params, optimizer=optimizer or make_optimizer(1.0))


@pytest.mark.parametrize(
    "name, settings, expected",
    [
        ("decay-by-batches", {"factor": 0.5, "num_batches": 0}, "`num_batches` of at least 1"),
        ("linear-decay", {}, "either minutes or steps .* found minutes None, steps None"),
        ("linear-decay", {"minutes": 5, "steps": 100}, "found minutes 5, steps 100"),
        ("linear-decay", {"minutes": 0}, "minutes or steps above 0, .* found minutes 0"),
        ("linear-decay", {"steps": 5, "warmup_steps": -1}, "at least 0 .* warmup_steps -1"),
        ("linear-decay", {"minutes": 5, "end_factor": -0.1}, "and end_factor -0.1"),
        ("linear-decay", {"minutes": 5, "end_factor": 1.1}, "and end_factor 1.1"),
        ("reduce-on-plateau", {}, 'key "mode" is required'),
        ("reduce-on-plateau", {"mode": "up"}, "elmo-reduce-on-plateau: mode up"),
        ("reduce-on-plateau", {"mode": "max", "threshold_mode": "x"}, "threshold mode x"),
        ("reduce-on-plateau", {"mode": "max", "factor": 1.0}, "Factor should be < 1.0"),
        ("reduce-on-plateau", {"mode": "max", "verbose": True}, "verbose"),
    ],
)
def test_settings_that_no_schedule_can_have_are_refused(name, settings, expected):
    with pytest.raises(ConfigurationError, match=expected):
        make(name, **settings)


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


@pytest.mark.parametrize("steps", [1, 5])
def test_rates_by_batches_are_the_closed_form_after_a_recovery_too(steps):
    optimizer, found = make_optimizer(0.3, 0.03), []
    scheduler = make("decay-by-batches", optimizer, factor=0.999, num_batches=2)
    for number in range(1, 9):
        if number == steps:
            # Epochs do not count. The version before stored one number more.
            scheduler.step()
            state = {**scheduler.state_dict(), "_num_updates": number}
            scheduler = make("decay-by-batches", optimizer, factor=0.999, num_batches=2)
            scheduler.load_state_dict(state)
        scheduler.step_batch(number)
        found.append(rates(optimizer))
    assert found == [[rate * 0.999 ** (n // 2) for rate in (0.3, 0.03)] for n in range(8)]


@pytest.fixture
def clock(monkeypatch):
    """Its `now` is the time in seconds."""
    clock = SimpleNamespace(now=1000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr("elmo_plugin.training.schedulers.time", clock)
    return clock


def linear(*rates, **settings):
    optimizer = make_optimizer(*rates)
    return make("linear-decay", optimizer, **settings), optimizer


def pass_time(scheduler, clock, *seconds):
    """Batches that take so long."""
    for duration in seconds:
        clock.now += duration
        scheduler.step_batch()


def test_rates_fall_to_zero_over_the_time_given(clock):
    scheduler, optimizer = linear(1.0, 0.1, minutes=2)
    # How long the start took is not known.
    pass_time(scheduler, clock, 55.0)
    assert rates(optimizer) == [1.0, 0.1]
    pass_time(scheduler, clock, 30.0)
    assert rates(optimizer) == pytest.approx([0.75, 0.075])
    pass_time(scheduler, clock, 10.0, 20.0)
    assert rates(optimizer) == pytest.approx([0.5, 0.05])
    # Validation takes no time.
    clock.now += 500.0
    scheduler.step(0.5)
    assert scheduler.progress == pytest.approx(0.5)
    pass_time(scheduler, clock, 59.0)
    assert not scheduler.is_over
    pass_time(scheduler, clock, 2.0)
    assert scheduler.is_over and rates(optimizer) == [0.0, 0.0]
    pass_time(scheduler, clock, 100.0)
    assert scheduler.progress == 1.0 and rates(optimizer) == [0.0, 0.0]


def test_a_recovered_run_continues_with_the_time_used(clock):
    scheduler, _ = linear(1.0, minutes=1, warmup_steps=100)
    pass_time(scheduler, clock, 0.0, 10.0, 20.0)
    state = scheduler.state_dict()
    clock.now = 5.0
    other, optimizer = linear(1.0, minutes=1, warmup_steps=100)
    other.load_state_dict(state)
    pass_time(other, clock, 70.0)
    assert other.progress == pytest.approx(0.5)
    assert rates(optimizer) == pytest.approx([0.5 * 4 / 100])


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"minutes": 1, "warmup_steps": 4}, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]),
        ({"steps": 4}, [0.75, 0.5, 0.25, 0.0, 0.0]),
        ({"steps": 4, "end_factor": 0.5}, [0.875, 0.75, 0.625, 0.5, 0.5]),
    ],
)
def test_rates_follow_the_number_of_updates(clock, settings, expected):
    scheduler, optimizer = linear(1.0, 0.1, **settings)
    for rate in expected:
        pass_time(scheduler, clock, 0.0)
        assert rates(optimizer) == pytest.approx([rate, 0.1 * rate])
    assert scheduler.is_over == ("steps" in settings)


def rates_after(scheduler: LearningRateScheduler, metrics: List[float]) -> List[float]:
    """The learning rate after each epoch."""
    after = []
    for metric in metrics:
        scheduler.step(metric)
        after.append(scheduler.get_values()[0])
    return after


@pytest.mark.parametrize(
    "settings, metrics, expected",
    [
        (
            {"mode": "max", "patience": 1},
            [0.1, 0.2, 0.2, 0.2, 0.2, 0.2],
            [1, 1, 1, 0.5, 0.5, 0.25],
        ),
        # The trainer negates the losses 5, 4, 3: they fall, then stall twice, and rise.
        (
            {"mode": "min", "patience": 0},
            [-5.0, -4.0, -3.0, -3.0, -3.0, -6.0],
            [1, 1, 1, 0.5, 0.25, 0.125],
        ),
        (
            {
                "mode": "max",
                "factor": 0.25,
                "patience": 0,
                "threshold": 0.05,
                "threshold_mode": "abs",
            },
            [0.1, 0.12, 0.2, 0.24],
            [1, 0.25, 0.25, 0.0625],
        ),
    ],
)
def test_the_rate_is_reduced_when_a_score_stalls_also_after_a_recovery(settings, metrics, expected):
    optimizer = make_optimizer(1.0)
    scheduler = make("reduce-on-plateau", optimizer, **settings)
    before = rates_after(scheduler, metrics[:2])
    restored = make("reduce-on-plateau", optimizer, **settings)
    restored.load_state_dict(scheduler.state_dict())
    assert before + rates_after(restored, metrics[2:]) == expected


def test_a_missing_metric_is_refused():
    with pytest.raises(ConfigurationError, match="requires a validation metric"):
        make("reduce-on-plateau", mode="max").step(None)
