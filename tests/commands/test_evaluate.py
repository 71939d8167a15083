"""`allennlp evaluate`, as AllenNLP starts it, with this plugin."""

import json

import pytest
from allennlp.common import Params
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator
from allennlp.models import archival

from tests.commands.running import refusal, run
from tests.tagger import CORPUS, repack


def evaluate(archive, file, tmp_path, *arguments):
    out = tmp_path / "metrics.json"
    run("evaluate", archive, file, "--output-file", out, *arguments)
    return json.loads(out.read_text())


def refused(archive, file, *arguments):
    return refusal("evaluate", archive, file, *arguments)


def expected(archive, **reader):
    """What AllenNLP's evaluator makes of the corpus."""
    overrides = {f"validation_dataset_reader.{name}": value for name, value in reader.items()}
    loaded = archival.load_archive(archive, overrides=overrides)
    loader = loaded.config["validation_data_loader"].duplicate()
    loader.pop("batches_per_epoch")
    data = DataLoader.from_params(
        loader, reader=loaded.validation_dataset_reader, data_path=str(CORPUS)
    )
    data.index_with(loaded.model.vocab)
    return Evaluator.from_params(Params({}))(loaded.model, data)


def test_all_of_a_corpus_is_evaluated_unless_the_call_says_otherwise(tagger, tmp_path):
    whole = evaluate(tagger, CORPUS, tmp_path)
    # Batches are drawn with some noise, which moves the last digit of the loss.
    assert whole == pytest.approx(expected(tagger, max_instances=None), rel=1e-6)
    limit = '{"validation_dataset_reader.max_instances": 3}'
    part = evaluate(tagger, CORPUS, tmp_path, "-o", limit)
    assert part == pytest.approx(expected(tagger, max_instances=3), rel=1e-6)
    assert part["loss"] != pytest.approx(whole["loss"], rel=1e-3)


def test_a_last_batch_that_is_not_full_is_evaluated(tagger, tmp_path):
    def drop_last(config):
        config["validation_data_loader"] = {"batch_size": 5, "drop_last": True}

    dropping = repack(tagger, tmp_path / "dropping.tar.gz", drop_last)
    whole = evaluate(dropping, CORPUS, tmp_path)["loss"]
    given = ("-o", '{"validation_data_loader.drop_last": true}')
    dropped = evaluate(dropping, CORPUS, tmp_path, *given)["loss"]
    assert whole != pytest.approx(dropped, rel=1e-3)


def test_a_corpus_without_labels_is_refused(tagger, tmp_path):
    (tmp_path / "words").write_text("Ada\nLind\n\nOslo\n")
    message = refused(tagger, tmp_path / "words")
    assert f"{tmp_path}/words: expected labels to compare predictions with, found none" in message


def test_each_input_needs_an_output(tagger, tmp_path):
    message = refused(tagger, f"{CORPUS},{CORPUS}", "--output-file", tmp_path / "metrics.json")
    assert message.endswith("the number of datasets being evaluated. Separate them by commas.")


def test_a_corpus_without_instances_is_refused(tagger, tmp_path):
    (tmp_path / "empty").touch()
    assert f"{tmp_path}/empty: " in refused(tagger, tmp_path / "empty")


@pytest.mark.parametrize(
    "missing, limit", [("instances", 0), ("labels to compare predictions with", None)]
)
def test_a_refused_corpus_leaves_no_new_files(tagger, tmp_path, missing, limit):
    (tmp_path / "corpus").write_text("Ada\nLind\n")
    (tmp_path / "older").touch()
    overrides = json.dumps({"validation_dataset_reader.max_instances": limit})
    for metrics, predictions in (("new", "older"), ("older", "new")):
        files = ("--output-file", tmp_path / metrics)
        files += ("--predictions-output-file", tmp_path / predictions)
        message = refused(tagger, tmp_path / "corpus", *files, "-o", overrides)
        assert f"{tmp_path}/corpus: expected {missing}, found none" in message
        assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "older"]


@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_size_below_1_is_refused(tagger, size):
    message = refused(tagger, CORPUS, f"--batch-size={size}")
    assert message == f"Expected --batch-size of at least 1, found {size}."


@pytest.mark.parametrize("part", ["model", "validation_data_loader"])
def test_nothing_in_an_untrusted_archive_is_executed(tagger, tmp_path, part):
    def change(config):
        config[part]["type"] = "subprocess.Popen"

    evil = repack(tagger, tmp_path / "evil.tar.gz", change)
    assert f"({part}.type in config.json) is refused" in refused(evil, CORPUS)


def test_what_is_constructed_after_the_model_is_registered_too(tagger, tmp_path):
    def change(config):
        config["validation_data_loader"]["batch_sampler"] = "os.getcwd"

    evil = repack(tagger, tmp_path / "evil.tar.gz", change)
    assert f"{evil} is refused: expected the registered name" in refused(evil, CORPUS)
