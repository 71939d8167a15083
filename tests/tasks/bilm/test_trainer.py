"""A run that is killed and recovered ends as the run that was left alone, bit for bit."""

import copy
import json
import os
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params

from elmo_plugin.tasks.bilm.model import BilmModel
from tests.bilm.pretraining.tiny import make_experiment, without_characters
from tests.training.killed_training import batch_losses, count_events, train, train_with_kills

# AllenNLP's schedulers and averages that count batches must count on.
AVERAGED = {
    "moving_average": {"type": "exponential", "decay": 0.9, "numerator": 1.0, "denominator": 10.0},
    "learning_rate_scheduler": {
        "type": "linear_with_warmup",
        "num_epochs": 3,
        "num_steps_per_epoch": 12,
        "warmup_steps": 5,
    },
}
ACCUMULATED = {
    "num_gradient_accumulation_steps": 2,
    "checkpointer": {"type": "elmo-atomic", "save_every_num_batches": 2},
    "optimizer": {"type": "elmo-adagrad", "lr": 0.1},
    # Worse is better: what the first epoch left has to be there at the end.
    "validation_metric": "+perplexity",
}
# As experiments/bilm_small.jsonnet.
ORTHOGONALISED = {
    "moving_average": {"type": "elmo-exponential", "decay": 0.9},
    "optimizer": {
        "type": "elmo-muon",
        "lr": 0.01,
        "parameter_groups": [
            [["lstm.*(input|recurrent).weight"], {"blocks": 4}],
            [["lstm.*projection.weight"], {"blocks": 1}],
        ],
    },
}


def assert_same_end(found: Path, expected: Path) -> None:
    """Parameters, checkpoints and best scores of two runs."""
    for name in ("best.th", *(path.name for path in expected.glob("*_state_*.th"))):
        states = [torch.load(folder / name, weights_only=True) for folder in (found, expected)]
        for state in states:
            state.get("learning_rate_scheduler", {}).pop("elapsed", None)
        # Else, trainers remember the same too.
        assert_equal(*states, name)
    metrics = [json.loads((folder / "metrics.json").read_text()) for folder in (found, expected)]
    for name in ("best_epoch", "best_validation_perplexity"):
        assert metrics[0][name] == metrics[1][name]


def assert_equal(found, expected, place: str) -> None:
    if isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected), place
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for name in expected:
            assert_equal(found[name], expected[name], f"{place}/{name}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), place
        for number, (one, other) in enumerate(zip(found, expected)):
            assert_equal(one, other, f"{place}/{number}")
    elif not (isinstance(expected, str) and os.sep in expected):
        assert found == expected, place


def train_here(experiment, folder: Path, recover: bool = False) -> BilmModel:
    return train_model(Params(copy.deepcopy(experiment)), folder, recover=recover)


@pytest.mark.parametrize(
    "order, settings, seed",
    [("sentences", AVERAGED, 0), ("streams", ACCUMULATED, 1), ("streams", ORTHOGONALISED, 2)],
)
def test_a_killed_and_recovered_run_ends_like_an_uninterrupted_one(tmp_path, order, settings, seed):
    experiment = make_experiment(tmp_path, order, **settings)
    if settings is ORTHOGONALISED:
        experiment = without_characters(experiment)
    assert train(experiment, tmp_path / "whole")
    draw = Random(seed)
    # Few events are not enough to come to a checkpoint, many are a third of the run.
    num_starts = train_with_kills(
        experiment, tmp_path / "killed", (draw.randint(8, 30) for _ in range(100))
    )
    assert num_starts > 2
    assert_same_end(tmp_path / "killed" / "run", tmp_path / "whole" / "run")


def test_recovering_after_early_stopping_trains_no_epoch(tmp_path):
    experiment = make_experiment(
        tmp_path, "sentences", num_epochs=5, patience=1, validation_metric="+perplexity"
    )
    train_here(experiment, tmp_path / "run")
    stopped_after = len(list((tmp_path / "run").glob("metrics_epoch_*.json")))
    assert stopped_after < 5
    best = torch.load(tmp_path / "run" / "best.th", weights_only=True)
    # Killed before its archive was written, say.
    model = train_here(experiment, tmp_path / "run", recover=True)
    assert len(list((tmp_path / "run").glob("metrics_epoch_*.json"))) == stopped_after
    assert_equal(torch.load(tmp_path / "run" / "best.th", weights_only=True), best, "best.th")
    assert_equal(dict(model.state_dict()), dict(best), "model")


class Clock:
    """Every look at it takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    name = "elmo_plugin.training.schedulers.time"
    monkeypatch.setattr(name, SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.mark.parametrize(
    "order, budget",
    [("sentences", {"minutes": 0.5}), ("streams", {"minutes": 0.5}), ("streams", {"steps": 31})],
)
def test_training_ends_with_the_schedule(tmp_path, clock, monkeypatch, order, budget):
    rates = []
    forward = BilmModel.forward
    monkeypatch.setattr(
        BilmModel,
        "forward",
        lambda model, **batch: model.training and rates.append(0) or forward(model, **batch),
    )
    experiment = make_experiment(
        tmp_path,
        order,
        num_epochs=1000,
        learning_rate_scheduler={"type": "elmo-linear-decay", **budget},
    )
    train_here(experiment, tmp_path / "run")
    log = (tmp_path / "run/out.log").read_text(encoding="utf-8")
    assert "The schedule of the learning rate has ended" in log
    assert "Ran out of patience" not in log
    # The time of the first batch does not count.
    assert len(rates) == 31
    epochs = len(list((tmp_path / "run").glob("metrics_epoch_*.json")))
    assert 2 <= epochs <= 4
    assert (tmp_path / "run" / "model.tar.gz").exists()
    before = torch.load(tmp_path / "run" / "best.th", weights_only=True)
    train_here(experiment, tmp_path / "run", recover=True)
    assert len(list((tmp_path / "run").glob("metrics_epoch_*.json"))) == epochs
    assert len(rates) == 31
    assert_equal(torch.load(tmp_path / "run" / "best.th", weights_only=True), before, "best.th")


def test_a_run_killed_after_its_last_update_is_recovered(tmp_path):
    schedule = {"type": "elmo-linear-decay", "steps": 8, "end_factor": 0.5}
    experiment = make_experiment(tmp_path, "sentences", learning_rate_scheduler=schedule)
    assert train(experiment, tmp_path / "whole")
    assert len(batch_losses(tmp_path / "whole")) == 8
    events = count_events(tmp_path / "whole")
    batches = [number for number, event in enumerate(events, start=1) if event == "batch_outputs"]
    # The first batch of the validation.
    assert not train(experiment, tmp_path / "killed", batches[8])
    assert (tmp_path / "killed" / "run" / "model_state_e0_b8.th").exists()
    assert train(experiment, tmp_path / "killed")
    assert_same_end(tmp_path / "killed" / "run", tmp_path / "whole" / "run")


@pytest.mark.parametrize("order", ["sentences", "streams"])
def test_two_processes_learn_what_one_does(tmp_path, order):
    experiment = make_experiment(tmp_path, order, num_epochs=1)
    experiment["model"].update(num_samples=None, dropout=0.0)
    assert train(experiment, tmp_path / "one")
    two = {**experiment, "distributed": {"cuda_devices": [-1, -1]}}
    assert train(two, tmp_path / "two")
    expected = batch_losses(tmp_path / "one")
    shares = [batch_losses(tmp_path / "two", rank) for rank in range(2)]
    assert len(shares[0]) == len(shares[1]) >= 10
    found = [sum(pair) / 2 for pair in zip(*shares)]
    # The last batches of streams, of less than one row each, are put together.
    num_batches = len(found) - (order == "streams")
    assert found[:num_batches] == pytest.approx(expected[:num_batches], rel=1e-5)
    metrics = [
        json.loads((tmp_path / name / "run" / "metrics.json").read_text())
        for name in ("one", "two")
    ]
    if order == "sentences":
        for name in ("validation_perplexity", "training_perplexity", "training_loss"):
            assert metrics[1][name] == pytest.approx(metrics[0][name], rel=1e-5)


def test_several_processes_need_our_checkpointer(tmp_path):
    experiment = make_experiment(tmp_path, "sentences", checkpointer={"save_every_num_batches": 4})
    experiment["distributed"] = {"cuda_devices": [-1, -1]}
    with pytest.raises(AssertionError, match="Expected the checkpointer elmo-atomic"):
        train(experiment, tmp_path / "two")
