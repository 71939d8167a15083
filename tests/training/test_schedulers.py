"""Learning rates, step for step, and after a recovery."""

from pathlib import Path
from types import SimpleNamespace
from typing import Dict, List

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.data.instance import Instance
from allennlp.models import Model
from allennlp.training import Checkpointer, GradientDescentTrainer
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
        *(
            (
                "decay-by-batches",
                {"factor": f, "num_batches": n},
                f"{f} and {n}",
            )
            for f, n in [(0.0, 1), (1.5, 1), (0.5, 0)]
        ),
        ("linear-decay", {}, "either minutes or steps, found neither"),
        ("linear-decay", {"minutes": 5, "steps": 100}, "either minutes or steps, found both"),
        ("linear-decay", {"minutes": 0}, "minutes or steps above 0, .* found 0, 0 and 0"),
        ("linear-decay", {"steps": 0}, "minutes or steps above 0, .* found 0, 0 and 0"),
        ("linear-decay", {"steps": 5, "warmup_steps": -1}, "of at least 0 .* found 5, -1 and 0"),
        ("linear-decay", {"minutes": 5, "end_factor": -0.1}, "found 5, 0 and -0.1"),
        ("linear-decay", {"minutes": 5, "end_factor": 1.1}, "found 5, 0 and 1.1"),
        ("reduce-on-plateau", {}, 'key "mode" is required'),
        ("reduce-on-plateau", {"mode": "up"}, "`mode` to be one of min, max, found 'up'"),
        (
            "reduce-on-plateau",
            {"mode": "max", "threshold_mode": "both"},
            "`threshold_mode` to be one of rel, abs, found 'both'",
        ),
        ("reduce-on-plateau", {"mode": "max", "factor": 1.0}, "between 0 and 1, but it is 1.0"),
        ("reduce-on-plateau", {"mode": "max", "verbose": True}, "verbose"),
    ],
)
def test_settings_that_no_schedule_can_have_are_refused(name, settings, expected):
    with pytest.raises(ConfigurationError, match=expected):
        make(name, **settings)


# Decay by batches.


def rates_at(scheduler, optimizer, numbers):
    """The rate of the first group at each update, whose number AllenNLP's trainer gives."""
    rates = []
    for number in numbers:
        scheduler.step_batch(number)
        rates.append(optimizer.param_groups[0]["lr"])
    return rates


def test_rates_fall_after_a_number_of_batches_not_of_epochs():
    optimizer = make_optimizer(1.0, 0.1)
    scheduler = make("decay-by-batches", optimizer, factor=0.5, num_batches=3)
    assert rates_at(scheduler, optimizer, [1, 2]) == [1.0, 1.0]
    scheduler.step()
    assert rates_at(scheduler, optimizer, range(3, 8)) == [1.0, 0.5, 0.5, 0.5, 0.25]
    assert optimizer.param_groups[1]["lr"] == 0.025


@pytest.mark.parametrize("steps", [1, 5])
def test_rates_by_batches_are_the_closed_form_after_a_recovery_too(steps):
    optimizer = make_optimizer(0.3)
    scheduler = make("decay-by-batches", optimizer, factor=0.999, num_batches=2)
    found = rates_at(scheduler, optimizer, range(1, steps + 1))
    again = make_optimizer(0.3)
    again.load_state_dict(optimizer.state_dict())
    recovered = make("decay-by-batches", again, factor=0.999, num_batches=2)
    state = scheduler.state_dict()
    # The version before did not store it.
    del state["_num_updates"]
    recovered.load_state_dict(state)
    found += rates_at(recovered, again, range(steps + 1, 9))
    assert found == [0.3 * 0.999 ** (number // 2) for number in range(8)]


# Linear decay.


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


def rates(optimizer):
    return [group["lr"] for group in optimizer.param_groups]


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
    assert scheduler.progress == pytest.approx(0.5)
    pass_time(scheduler, clock, 59.0)
    assert not scheduler.is_over
    pass_time(scheduler, clock, 2.0)
    assert scheduler.is_over and rates(optimizer) == [0.0, 0.0]
    pass_time(scheduler, clock, 100.0)
    assert scheduler.progress == 1.0 and rates(optimizer) == [0.0, 0.0]


def test_rates_rise_over_the_first_batches(clock):
    scheduler, optimizer = linear(1.0, minutes=1, warmup_steps=4)
    found = []
    for _ in range(6):
        pass_time(scheduler, clock, 0.0)
        found += rates(optimizer)
    assert found == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_validation_takes_no_time(clock):
    scheduler, _ = linear(1.0, minutes=1)
    pass_time(scheduler, clock, 0.0, 6.0)
    clock.now += 500.0
    scheduler.step(0.5)
    assert scheduler.progress == pytest.approx(0.1)
    pass_time(scheduler, clock, 6.0)
    assert scheduler.progress == pytest.approx(0.2)


def test_epochs_of_one_batch_take_time_too(clock):
    scheduler, _ = linear(1.0, minutes=1)
    for _ in range(11):
        pass_time(scheduler, clock, 6.0)
        scheduler.step()
    assert scheduler.is_over


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


def test_rates_fall_to_zero_over_the_updates_given(clock):
    scheduler, optimizer = linear(1.0, 0.1, steps=4)
    found = []
    for seconds in (0.0, 500.0, 1.0):
        pass_time(scheduler, clock, seconds)
        found += rates(optimizer)
    assert found == pytest.approx([0.75, 0.075, 0.5, 0.05, 0.25, 0.025])
    assert not scheduler.is_over
    other, optimizer = linear(1.0, 0.1, steps=4)
    other.load_state_dict(scheduler.state_dict())
    pass_time(other, clock, 1.0)
    assert other.is_over and rates(optimizer) == [0.0, 0.0]


def test_rates_may_end_at_a_fraction(clock):
    scheduler, optimizer = linear(1.0, minutes=1, end_factor=0.5)
    pass_time(scheduler, clock, 0.0, 30.0)
    assert rates(optimizer) == pytest.approx([0.75])
    pass_time(scheduler, clock, 31.0)
    assert scheduler.is_over and rates(optimizer) == pytest.approx([0.5])


# Reduction on a plateau.


def rates_after(scheduler: LearningRateScheduler, metrics: List[float]) -> List[float]:
    """The learning rate after each epoch."""
    after = []
    for metric in metrics:
        scheduler.step(metric)
        after.append(scheduler.get_values()[0])
    return after


class Scripted(Model):
    """A linear model whose validation F1 is read from a list."""

    def __init__(self, scores: List[float]) -> None:
        super().__init__(Vocabulary())
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.scores = scores

    def forward(self, x: torch.Tensor) -> Dict[str, torch.Tensor]:  # type: ignore[override]
        return {"loss": ((self.weight * x) ** 2).mean()}

    def get_metrics(self, reset: bool = False) -> Dict[str, float]:
        if self.training or not reset:
            return {"f1": 0.0}
        return {"f1": self.scores.pop(0)}


def train(
    folder: Path, scores: List[float], num_epochs: int, validate: bool = True
) -> GradientDescentTrainer:
    model = Scripted(scores)
    instances = [Instance({"x": TensorField(torch.ones(1))}) for _ in range(2)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.08)
    trainer = GradientDescentTrainer(
        model,
        optimizer,
        SimpleDataLoader(instances, batch_size=1),
        validation_data_loader=SimpleDataLoader(instances, batch_size=1) if validate else None,
        validation_metric="+f1",
        num_epochs=num_epochs,
        serialization_dir=str(folder),
        checkpointer=Checkpointer(str(folder)),
        learning_rate_scheduler=make("reduce-on-plateau", optimizer, mode="max", patience=0),
        cuda_device=-1,
        run_confidence_checks=False,
    )
    trainer.train()
    return trainer


def test_the_rate_is_halved_when_a_score_stalls():
    scheduler = make("reduce-on-plateau", mode="max", patience=1)
    assert rates_after(scheduler, [0.1, 0.2, 0.2, 0.2, 0.2, 0.2]) == [1, 1, 1, 0.5, 0.5, 0.25]


def test_min_watches_the_metric_that_the_trainer_negated():
    # The losses 5, 4, 3 fall: no reduction; then they stall twice, and rise.
    scheduler = make("reduce-on-plateau", mode="min", patience=0)
    assert rates_after(scheduler, [-5.0, -4.0, -3.0, -3.0, -3.0, -6.0]) == [
        1,
        1,
        1,
        0.5,
        0.25,
        0.125,
    ]


def test_the_arguments_are_those_of_torch():
    optimizer, twin = make_optimizer(1.0), make_optimizer(1.0)
    settings = dict(
        mode="max",
        factor=0.2,
        patience=1,
        threshold=0.05,
        threshold_mode="abs",
    )
    scheduler = make("reduce-on-plateau", optimizer, **settings)
    oracle = torch.optim.lr_scheduler.ReduceLROnPlateau(twin, **settings)
    for score in [0.1, 0.12, 0.14, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]:
        scheduler.step(score)
        oracle.step(score)
        assert optimizer.param_groups[0]["lr"] == twin.param_groups[0]["lr"]
    assert scheduler.get_values()[0] < 0.01


def test_a_restored_state_continues():
    scores = [0.1, 0.3, 0.3, 0.2, 0.3, 0.4, 0.4, 0.4]
    whole = rates_after(make("reduce-on-plateau", mode="max", patience=1), scores)
    first, optimizer = make("reduce-on-plateau", mode="max", patience=1), make_optimizer(1.0)
    before = rates_after(first, scores[:3])
    optimizer.param_groups[0]["lr"] = before[-1]
    second = make("reduce-on-plateau", optimizer, mode="max", patience=1)
    second.load_state_dict(first.state_dict())
    assert before + rates_after(second, scores[3:]) == whole


def test_the_trainer_halves_the_rate(tmp_path):
    trainer = train(tmp_path, [0.1, 0.2, 0.2, 0.3, 0.1], num_epochs=5)
    assert trainer.optimizer.param_groups[0]["lr"] == pytest.approx(0.02)


def test_resumed_training_ends_with_the_parameters_of_an_uninterrupted_one(tmp_path):
    scores = [0.4, 0.3, 0.4, 0.2, 0.5, 0.1]
    whole = train(tmp_path / "whole", list(scores), num_epochs=6)
    train(tmp_path / "parts", scores[:3], num_epochs=3)
    resumed = train(tmp_path / "parts", scores[3:], num_epochs=6)
    assert resumed.optimizer.param_groups[0]["lr"] == pytest.approx(0.08 / 16)
    assert torch.equal(resumed.model.weight, whole.model.weight)


def test_training_without_validation_is_refused_with_the_cure(tmp_path):
    with pytest.raises(ConfigurationError, match="set `validation_data_path`"):
        train(tmp_path, [], num_epochs=1, validate=False)


def test_a_metric_whose_sign_contradicts_the_mode_is_refused():
    with pytest.raises(ConfigurationError, match="Set `mode` to 'max'"):
        make("reduce-on-plateau", mode="min").step(0.9)
    with pytest.raises(ConfigurationError, match="to 'min' .* `threshold_mode` to 'abs'"):
        make("reduce-on-plateau", mode="max").step(-100.0)
    make("reduce-on-plateau", mode="max", threshold_mode="abs").step(-0.1)
