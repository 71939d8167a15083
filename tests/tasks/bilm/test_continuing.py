"""A training that goes on from exported weights against one that was not cut."""

import copy
import json
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.softmax import softmax_of
from elmo_plugin.bilm.files.trained import TrainedModel
from tests.bilm.pretraining.tiny import make_experiment

TEXT = Path(__file__).parents[3] / "fixtures" / "corpora" / "lm" / "large"
NUM_EPOCHS = 6


def make(folder, num_epochs, rate, end_rate):
    experiment = make_experiment(
        folder,
        "sentences",
        num_epochs=num_epochs,
        optimizer={
            "type": "elmo-muon",
            "lr": rate,
            "betas": [0.9, 0.99],
            "parameter_groups": [[["lstm.*(input|recurrent).weight"], {"blocks": 4}]],
        },
        learning_rate_scheduler={
            "type": "polynomial_decay",
            "warmup_steps": 5,
            "power": 1.0,
            "end_learning_rate": end_rate,
        },
    )
    experiment["train_data_path"] = str(TEXT / "train-00.txt")
    experiment["validation_data_path"] = str(TEXT / "heldout.txt")
    experiment["vocabulary"]["text"] = experiment["train_data_path"]
    experiment["model"].update(dropout=0.0, num_samples=None)
    experiment["data_loader"].update(tokens_per_batch=200, seed=3)
    return experiment


def perplexity(experiment, folder):
    train_model(Params(copy.deepcopy(experiment)), folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    return metrics["validation_perplexity"]


def test_a_training_that_was_cut_ends_as_one_that_was_not(tmp_path):
    rate, middle = 0.005, 0.0025
    whole = perplexity(make(tmp_path, NUM_EPOCHS, rate, 0.0), tmp_path / "whole")
    first = perplexity(make(tmp_path, NUM_EPOCHS // 2, rate, middle), tmp_path / "first")

    # Published in half precision, without the state of the optimizer.
    trained = TrainedModel.read(str(tmp_path / "first" / "model.tar.gz"))
    save_bilm(trained.bilm(), tmp_path / "published", softmax_of(trained), dtype="float16")
    second = make(tmp_path, NUM_EPOCHS // 2, middle, 0.0)
    second["vocabulary"] = {"type": "elmo-bilm", "file": str(tmp_path / "published/vocabulary.txt")}
    second["model"]["initial_weights"] = str(tmp_path / "published" / "weights.hdf5")
    found = perplexity(second, tmp_path / "second")

    # It was worth going on.
    gain = first - whole
    assert gain > 0.05 * whole
    # The optimizer starts without its state, which costs 8 to 17 % of the gain with the data in
    # four orders.
    assert found == pytest.approx(whole, abs=0.3 * gain)
