"""Training that starts from trained weights: which words take along what."""

import copy
import json
import logging
import shutil

import h5py
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model, load_archive

from elmo_plugin.bilm import save_weights
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, save_softmax
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_counts
from tests.bilm.pretraining.tiny import make_experiment, make_options, write_text
from tests.bilm.trained import save_run

OLD = [["a", "b", "b", "c", "naïve"]]
NEW = [["b", "new", "c", "b", "words", "b"]]


def make_vocabulary(folder, sentences):
    return SoftmaxVocabulary.from_text(text=str(write_text(folder / "text.txt", sentences)))


@pytest.fixture
def trained(tmp_path):
    torch.manual_seed(0)
    model = BilmModel(make_vocabulary(tmp_path, OLD), make_options())
    torch.nn.init.normal_(model.softmax.bias)
    return model


@pytest.fixture
def vocab(tmp_path):
    return make_vocabulary(tmp_path, NEW)


def save_as_folder(model, folder):
    return save_run(model, model.vocab, folder / "run")[0]


def save_as_archive(model, folder):
    return save_run(model, model.vocab, folder / "run")[1]


def save_as_files(model, folder):
    words = model.vocab.get_index_to_token_vocabulary("softmax_labels")
    weights = SoftmaxWeights(
        model.softmax.weight.detach(), model.softmax.bias.detach(), list(words.values())
    )
    save_softmax(weights, folder)
    save_weights(model.bilm, folder / "weights.hdf5")
    return folder / "weights.hdf5"


def save_as_one_file(model, folder):
    """As a checkpoint of bilm-tf is dumped with its softmax, its words beside it."""
    save_as_files(model, folder)
    with h5py.File(folder / "weights.hdf5", "a") as file, h5py.File(folder / "softmax.hdf5") as own:
        for name in ("softmax/W", "softmax/b"):
            file[name] = own[name][...]
    (folder / "softmax.hdf5").unlink()
    return folder / "weights.hdf5"


def row_of(model, word):
    return model.vocab.get_token_to_index_vocabulary("softmax_labels")[word]


@pytest.mark.parametrize("save", [save_as_folder, save_as_archive, save_as_files, save_as_one_file])
def test_words_known_already_keep_their_rows_and_others_start_afresh(
    trained, vocab, tmp_path, save
):
    path = save(trained, tmp_path)
    torch.manual_seed(1)
    model = BilmModel(vocab, make_options(), initial_weights=str(path))
    torch.manual_seed(1)
    fresh = BilmModel(vocab, make_options())
    for name, parameter in model.bilm.named_parameters():
        assert torch.equal(parameter, trained.bilm.state_dict()[name]), name
    for word in ("<S>", "</S>", "<UNK>", "b", "c"):
        ours, theirs = row_of(model, word), row_of(trained, word)
        assert torch.equal(model.softmax.weight[ours], trained.softmax.weight[theirs])
        assert torch.equal(model.softmax.bias[ours], trained.softmax.bias[theirs])
    for word in ("new", "words"):
        row = row_of(model, word)
        assert torch.equal(model.softmax.weight[row], fresh.softmax.weight[row])
        assert torch.equal(model.softmax.bias[row], fresh.softmax.bias[row])
    assert row_of(model, "b") != row_of(trained, "a")


def test_the_words_of_a_softmax_may_stand_elsewhere(trained, vocab, tmp_path):
    path = save_as_one_file(trained, tmp_path)
    (tmp_path / "vocabulary.txt").rename(tmp_path / "words.txt")
    initial = {"file": str(path), "vocabulary_file": str(tmp_path / "words.txt")}
    params = Params({"type": "elmo-bilm", "options": make_options(), "initial_weights": initial})
    model = Model.from_params(params, vocab=vocab)
    ours, theirs = row_of(model, "b"), row_of(trained, "b")
    assert torch.equal(model.softmax.weight[ours], trained.softmax.weight[theirs])


def test_a_softmax_whose_words_are_missing_or_others_is_refused(trained, vocab, tmp_path):
    path = str(save_as_one_file(trained, tmp_path))
    words = tmp_path / "vocabulary.txt"
    words.write_text(words.read_text() + "more\n")
    with pytest.raises(ConfigurationError, match="weights.hdf5 .*expected a weight of shape .8, "):
        BilmModel(vocab, make_options(), initial_weights=path)
    words.unlink()
    with pytest.raises(ConfigurationError, match="vocabulary.txt does not exist"):
        BilmModel(vocab, make_options(), initial_weights=path)
    with h5py.File(path, "a") as file:
        del file["softmax/b"]
    with pytest.raises(ConfigurationError, match="softmax/W and softmax/b, found softmax/W"):
        BilmModel(vocab, make_options(), initial_weights=path)


def test_weights_without_a_softmax_are_taken_with_a_warning(trained, vocab, tmp_path, caplog):
    save_weights(trained.bilm, tmp_path / "weights.hdf5")
    with caplog.at_level(logging.WARNING):
        model = BilmModel(vocab, make_options(), initial_weights=str(tmp_path / "weights.hdf5"))
    assert "weights.hdf5 comes without a softmax" in caplog.text
    assert torch.equal(
        model.bilm.lstm.forward_layers[0].bias, trained.bilm.lstm.forward_layers[0].bias
    )
    counts = torch.tensor(softmax_counts(vocab), dtype=torch.float32).clamp_min(0.5)
    torch.testing.assert_close(model.softmax.bias.detach(), (counts / counts.sum()).log())


def test_once_trained_a_model_does_without_them(trained, tmp_path):
    (tmp_path / "old").mkdir()
    path = save_as_files(trained, tmp_path / "old")
    experiment = make_experiment(tmp_path, "sentences", num_epochs=1)
    experiment["model"]["initial_weights"] = str(path)
    model = train_model(Params(copy.deepcopy(experiment)), tmp_path / "run")
    shutil.rmtree(tmp_path / "old")
    archived = load_archive(tmp_path / "run" / "model.tar.gz").model
    assert torch.equal(archived.softmax.weight, model.softmax.weight)
    # The folder of the run can be read, and recovered, as well.
    load_archive(tmp_path / "run")
    train_model(Params(copy.deepcopy(experiment)), tmp_path / "run", recover=True)


def test_a_run_without_a_checkpoint_starts_from_them_again(trained, tmp_path):
    path = save_as_files(trained, tmp_path)
    experiment = make_experiment(tmp_path, "sentences", num_epochs=1)
    experiment["model"]["initial_weights"] = str(path)
    experiment["trainer"]["optimizer"] = {"type": "sgd", "lr": 1e-12}
    train_model(Params(copy.deepcopy(experiment)), tmp_path / "run")
    for checkpoint in (tmp_path / "run").glob("*_state_*.th"):
        checkpoint.unlink()
    model = train_model(Params(copy.deepcopy(experiment)), tmp_path / "run", recover=True)
    for name, parameter in model.bilm.named_parameters():
        torch.testing.assert_close(parameter.data, trained.bilm.state_dict()[name])


def test_training_on_starts_where_training_ended(tmp_path):
    experiment = make_experiment(tmp_path, "sentences")
    train_model(Params(copy.deepcopy(experiment)), tmp_path / "first")
    reached = json.loads((tmp_path / "first" / "metrics.json").read_text())
    experiment["model"]["initial_weights"] = str(tmp_path / "first" / "model.tar.gz")
    experiment["trainer"].update(num_epochs=1, callbacks=["elmo-evaluate-before"])
    train_model(Params(copy.deepcopy(experiment)), tmp_path / "second")
    before = json.loads((tmp_path / "second" / "metrics_before.json").read_text())
    assert before["perplexity"] == pytest.approx(reached["best_validation_perplexity"], rel=1e-6)
