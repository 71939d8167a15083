from pathlib import Path
from typing import Dict, List, Optional

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

NAME = "elmo-reduce-on-plateau"


def make_optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)


def make(optimizer: Optional[torch.optim.Optimizer] = None, **settings) -> LearningRateScheduler:
    params = Params({"type": NAME, **settings})
    return LearningRateScheduler.from_params(params, optimizer=optimizer or make_optimizer())


def rates(scheduler: LearningRateScheduler, metrics: List[float]) -> List[float]:
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
        learning_rate_scheduler=make(optimizer, mode="max", patience=0),
        cuda_device=-1,
        run_confidence_checks=False,
    )
    trainer.train()
    return trainer


def test_the_rate_is_halved_when_a_score_stalls():
    scheduler = make(mode="max", patience=1)
    assert rates(scheduler, [0.1, 0.2, 0.2, 0.2, 0.2, 0.2]) == [1, 1, 1, 0.5, 0.5, 0.25]


def test_min_watches_the_metric_that_the_trainer_negated():
    # The losses 5, 4, 3 fall: no reduction; then they stall twice, and rise.
    scheduler = make(mode="min", patience=0)
    assert rates(scheduler, [-5.0, -4.0, -3.0, -3.0, -3.0, -6.0]) == [1, 1, 1, 0.5, 0.25, 0.125]


def test_the_arguments_are_those_of_torch():
    optimizer, twin = make_optimizer(), make_optimizer()
    settings = dict(
        mode="max",
        factor=0.2,
        patience=1,
        threshold=0.05,
        threshold_mode="abs",
    )
    scheduler = make(optimizer, **settings)
    oracle = torch.optim.lr_scheduler.ReduceLROnPlateau(twin, **settings)
    for score in [0.1, 0.12, 0.14, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]:
        scheduler.step(score)
        oracle.step(score)
        assert optimizer.param_groups[0]["lr"] == twin.param_groups[0]["lr"]
    assert scheduler.get_values()[0] < 0.01


def test_a_restored_state_continues():
    scores = [0.1, 0.3, 0.3, 0.2, 0.3, 0.4, 0.4, 0.4]
    whole = rates(make(mode="max", patience=1), scores)
    first, optimizer = make(mode="max", patience=1), make_optimizer()
    before = rates(first, scores[:3])
    optimizer.param_groups[0]["lr"] = before[-1]
    second = make(optimizer, mode="max", patience=1)
    second.load_state_dict(first.state_dict())
    assert before + rates(second, scores[3:]) == whole


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


@pytest.mark.parametrize(
    "settings, expected",
    [
        (dict(), 'key "mode" is required'),
        (dict(mode="up"), "`mode` to be one of min, max, found 'up'"),
        (
            dict(mode="max", threshold_mode="both"),
            "`threshold_mode` to be one of rel, abs, found 'both'",
        ),
        (dict(mode="max", factor=1.0), "between 0 and 1, but it is 1.0"),
        (dict(mode="max", verbose=True), "verbose"),
    ],
)
def test_a_setting_that_no_schedule_can_have_is_refused(settings, expected):
    with pytest.raises(ConfigurationError, match=expected):
        make(**settings)


def test_a_metric_whose_sign_contradicts_the_mode_is_refused():
    with pytest.raises(ConfigurationError, match="Set `mode` to 'max'"):
        make(mode="min").step(0.9)
    with pytest.raises(ConfigurationError, match="Set `mode` to 'min'.* or `threshold_mode`"):
        make(mode="max").step(-100.0)
    make(mode="max", threshold_mode="abs").step(-0.1)
