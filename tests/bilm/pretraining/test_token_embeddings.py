"""Training a biLM over token embeddings: one vocabulary is read and predicted."""

import copy
import json
import shutil

import pytest
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_plugin import embed_sentences
from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.softmax import softmax_of
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary
from tests.bilm.oracle import SlowBilm, assert_layers_equal, read_arrays
from tests.bilm.pretraining.tiny import (
    make_experiment,
    make_options,
    without_characters,
    write_text,
)


def token_options():
    return {name: value for name, value in make_options().items() if name != "char_cnn"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    train_model(Params(without_characters(make_experiment(folder, "sentences"))), folder / "run")
    return folder


def test_what_was_trained_agrees_with_the_slow_loop_once_exported(run, tmp_path):
    model = TrainedModel.read(run / "run" / "model.tar.gz")
    softmax = softmax_of(model)
    save_bilm(model.bilm(), tmp_path / "out", softmax)
    assert model.bilm().options.words == tuple(softmax.words)
    bilm = load_bilm(tmp_path / "out" / "options.json", tmp_path / "out" / "weights.hdf5")
    slow = SlowBilm(bilm.options.source, read_arrays(tmp_path / "out" / "weights.hdf5"))
    words = ["w3", "w1", "unheard"]
    (found,) = embed_sentences(bilm, [words])
    assert_layers_equal(found, slow.layers(words)[:, 1:-1])


def test_fine_tuning_goes_on_from_an_export_with_its_vocabulary(run, tmp_path):
    model = TrainedModel.read(run / "run" / "model.tar.gz")
    save_bilm(model.bilm(), tmp_path / "out", softmax_of(model))
    experiment = without_characters(
        make_experiment(tmp_path, "sentences", num_epochs=1, callbacks=["elmo-evaluate-before"])
    )
    options_file = str(tmp_path / "out" / "options.json")
    experiment["dataset_reader"] = {"type": "elmo-bilm", "options_file": options_file}
    del experiment["model"]["options"]
    experiment["model"]["options_file"] = options_file
    experiment["model"]["initial_weights"] = str(tmp_path / "out" / "weights.hdf5")
    experiment["vocabulary"] = {"type": "elmo-bilm", "file": str(tmp_path / "out/vocabulary.txt")}
    train_model(Params(copy.deepcopy(experiment)), tmp_path / "tuned")
    before = json.loads((tmp_path / "tuned" / "metrics_before.json").read_text())
    reached = json.loads((run / "run" / "metrics.json").read_text())
    assert before["perplexity"] == pytest.approx(reached["best_validation_perplexity"], rel=1e-6)
    shutil.rmtree(tmp_path / "out")
    tuned = json.loads((tmp_path / "tuned" / "metrics.json").read_text())
    found = evaluate_from_archive(tmp_path / "tuned/model.tar.gz", str(tmp_path / "heldout.txt"))
    assert found["perplexity"] == pytest.approx(tuned["best_validation_perplexity"], rel=1e-6)


def test_other_words_than_those_that_are_read_cannot_be_predicted(run, tmp_path):
    model = TrainedModel.read(run / "run" / "model.tar.gz")
    save_bilm(model.bilm(), tmp_path / "out")
    text = str(write_text(tmp_path / "text.txt", [["other", "words"]]))
    vocab = SoftmaxVocabulary.from_text(text=text)
    with pytest.raises(
        ConfigurationError, match="33 words of the token embeddings, found 5 others"
    ):
        BilmModel(vocab, options_file=str(tmp_path / "out" / "options.json"))
    with pytest.raises(ConfigurationError, match="`share_embedding_softmax` is true"):
        BilmModel(vocab, {**token_options(), "share_embedding_softmax": True})
