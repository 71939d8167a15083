import copy
import json

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training import GradientDescentTrainer
from allennlp.training.util import evaluate

from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.tasks.bilm.reader import BilmReader
from tests.bilm.pretraining.tiny import make_experiment, make_options


@pytest.fixture
def experiment(tmp_path):
    return make_experiment(tmp_path, "sentences", callbacks=["elmo-evaluate-before"])


def train(experiment, folder, recover=False):
    return train_model(Params(copy.deepcopy(experiment)), folder, recover=recover)


def read_json(path):
    return json.loads(path.read_text())


def test_it_writes_what_the_untrained_model_reaches(experiment, tmp_path):
    # Training changes nothing: before and after are the same.
    experiment["trainer"]["optimizer"]["lr"] = 0.0
    model = train(experiment, tmp_path / "run")
    before = read_json(tmp_path / "run" / "metrics_before.json")
    assert before.keys() == {"perplexity", "forward_perplexity", "backward_perplexity"}
    loader = BilmDataLoader(BilmReader(options=make_options()), tmp_path / "heldout.txt")
    loader.index_with(model.vocab)
    found = evaluate(model, loader)
    for name, value in before.items():
        assert value == pytest.approx(found[name], rel=1e-5)


def test_training_is_the_same_with_and_without_it(experiment, tmp_path):
    experiment["validation_data_loader"]["shuffle"] = True
    model = train(experiment, tmp_path / "with")
    del experiment["trainer"]["callbacks"]
    other = train(experiment, tmp_path / "without")
    for pair in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(*pair)


def test_validation_goes_on_in_the_order_it_would_have_had(experiment, tmp_path, monkeypatch):
    experiment["validation_data_loader"].update(shuffle=True, tokens_per_batch=20)
    epochs = []
    validate = GradientDescentTrainer._validation_loss
    forward = BilmModel.forward

    def noting_validate(self, epoch):
        epochs.append([])
        return validate(self, epoch)

    def noting_forward(self, **batch):
        if not self.training:
            epochs[-1].append(batch["forward_targets"].tolist())
        return forward(self, **batch)

    monkeypatch.setattr(GradientDescentTrainer, "_validation_loss", noting_validate)
    monkeypatch.setattr(BilmModel, "forward", noting_forward)
    train(experiment, tmp_path / "run")
    before, first, second = epochs
    assert before != first != second
    # As if killed in the second epoch.
    for path in (tmp_path / "run").glob("*_state_e2_*.th"):
        path.unlink()
    train(experiment, tmp_path / "run", recover=True)
    assert epochs[3:] == [second]


def test_a_text_to_evaluate_on_is_needed(experiment, tmp_path):
    del experiment["validation_data_path"], experiment["validation_data_loader"]
    with pytest.raises(ConfigurationError, match="set `validation_data_path`"):
        train(experiment, tmp_path / "run")
