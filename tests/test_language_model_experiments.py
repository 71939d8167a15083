"""The language models of `experiments/`, shrunk, learn the fixture text; a biLM learns more."""

import gzip
import importlib.util
import json
import math
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from allennlp.commands import main
from allennlp.commands.evaluate import evaluate_from_archive
from allennlp.commands.train import train_model
from allennlp.common import Params

import elmo_plugin.plugin  # noqa: F401

PROJECT = Path(__file__).parents[1]
TEXT = PROJECT / "fixtures/corpora/lm"
HELDOUT = str(TEXT / "large/heldout.txt")


def train(path, folder, overrides=""):
    """Metrics of the whole run, perplexity after each epoch."""
    train_model(Params.from_file(PROJECT / path, overrides), str(folder))
    epochs = sorted(folder.glob("metrics_epoch_*.json"))
    perplexities = [read(epoch)["validation_perplexity"] for epoch in epochs]
    return read(folder / "metrics.json"), perplexities


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def trained(folder):
    """Of the biLM that ships, shrunk."""
    return train("fixtures/experiments/bilm_small.jsonnet", folder / "bilm")


def assert_learned(metrics, perplexities):
    assert len(perplexities) > 1
    assert perplexities == sorted(perplexities, reverse=True)
    assert metrics["best_validation_perplexity"] == perplexities[-1] < 20


def test_the_shipped_recipe_learns_both_directions(trained):
    metrics, perplexities = trained
    assert_learned(metrics, perplexities)
    both = metrics["validation_forward_perplexity"] * metrics["validation_backward_perplexity"]
    assert perplexities[-1] == pytest.approx(math.sqrt(both))


def test_an_archive_is_evaluated_as_training_did(trained, folder):
    evaluated = evaluate_from_archive(folder / "bilm/model.tar.gz", HELDOUT)
    for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
        assert evaluated[name] == pytest.approx(trained[0][f"best_validation_{name}"], rel=1e-5)


@pytest.mark.parametrize(
    "name", ["bilm", "bilm_medium", "bilm_small_tokens", "lm_cnn_big_lstm", "lm_kim2016"]
)
def test_the_recipe_of_a_paper_learns(name, tmp_path):
    metrics, perplexities = train(f"fixtures/experiments/{name}.jsonnet", tmp_path)
    assert_learned(metrics, perplexities)
    assert ("validation_backward_perplexity" in metrics) == name.startswith("bilm")


def test_a_bilm_without_a_softmax_is_fine_tuned(tmp_path):
    metrics, _ = train("fixtures/experiments/bilm_finetune.jsonnet", tmp_path)
    before = read(tmp_path / "metrics_before.json")["perplexity"]
    assert metrics["validation_perplexity"] < before / 2


def test_fine_tuning_goes_on_from_what_was_learned(trained, folder, tmp_path, monkeypatch):
    exported = tmp_path / "exported"
    command = ["allennlp", "elmo-export", str(folder / "bilm/model.tar.gz"), str(exported)]
    with patch.object(sys, "argv", command), patch("allennlp.commands.import_plugins"):
        main(prog="allennlp")
    monkeypatch.setenv("ELMO_OPTIONS", str(exported / "options.json"))
    monkeypatch.setenv("ELMO_WEIGHTS", str(exported / "weights.hdf5"))
    metrics, perplexities = train(
        "experiments/bilm_finetune.jsonnet",
        tmp_path / "tuned",
        # The text is short.
        '{"data_loader.tokens_per_batch": 256, "trainer.optimizer.lr": 0.01}',
    )
    before = read(tmp_path / "tuned/metrics_before.json")
    assert sorted(before) == ["backward_perplexity", "forward_perplexity", "perplexity"]
    archive = folder / "bilm/model.tar.gz"
    evaluated = evaluate_from_archive(archive, str(TEXT / "small/heldout.txt"))
    assert before["perplexity"] == pytest.approx(evaluated["perplexity"], rel=1e-4)
    assert perplexities[0] < 0.7 * before["perplexity"]
    # Whoever gets the archive has everything.
    for path in exported.iterdir():
        path.unlink()
    tuned = evaluate_from_archive(tmp_path / "tuned/model.tar.gz", str(TEXT / "small/heldout.txt"))
    assert tuned["perplexity"] == pytest.approx(metrics["validation_perplexity"], rel=1e-5)


def test_the_fixture_text_is_what_its_script_writes(tmp_path):
    spec = importlib.util.spec_from_file_location("make", TEXT / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    make.HERE = tmp_path
    make.main()
    for name in make.FILES:
        written, kept = ((folder / name).read_bytes() for folder in (tmp_path, TEXT))
        if name.endswith(".gz"):
            written, kept = gzip.decompress(written), gzip.decompress(kept)
        assert written == kept, name
