"""`allennlp predict`, `evaluate` and `find-lr`, as AllenNLP starts them, with this plugin."""

import bz2
import gzip
import json
import os
import subprocess
import sys

import pytest
from allennlp.commands import find_learning_rate
from allennlp.common import Params
from allennlp.data import DataLoader
from allennlp.evaluation import Evaluator
from allennlp.models import archival

from elmo_plugin.commands.metrics import format_metrics
from elmo_plugin.corpora.conll2003 import read_sentences
from elmo_plugin.util.errors import ConfigurationError
from tests.commands.running import refusal, run
from tests.guide import FIXTURES
from tests.tagger import CORPUS, LINES, answers, repack

SENTENCES = sum(1 for _ in read_sentences(CORPUS))


def predict(archive, input_file, out, *arguments):
    run("predict", archive, input_file, "--silent", "--output-file", out, *arguments)
    return out.read_text(encoding="utf-8").splitlines(keepends=True)


def evaluate(archive, file, tmp_path, *arguments):
    out = tmp_path / "metrics.json"
    run("evaluate", archive, file, "--output-file", out, *arguments)
    return json.loads(out.read_text())


def refused(archive, input_file, command="predict"):
    quiet = ["--silent", "--output-file", os.devnull] if command == "predict" else []
    return refusal(command, archive, input_file, *quiet)


@pytest.mark.parametrize("arguments", [(), ("--batch-size", 3)])
def test_lines_are_answered_as_allennlp_does(tagger, tmp_path, arguments):
    expected = answers(archival.load_archive(tagger))
    assert predict(tagger, LINES, tmp_path / "out", *arguments) == expected


def test_every_instance_of_a_corpus_is_answered_unless_the_call_says_otherwise(tagger, tmp_path):
    given = (tagger, CORPUS, tmp_path / "out", "--use-dataset-reader", "--batch-size", 8)
    whole = predict(*given)
    assert len(whole) == SENTENCES > 5
    assert predict(*given, "--dataset-reader-choice", "train") == whole
    limit = '{"validation_dataset_reader.max_instances": 2}'
    assert predict(*given, "-o", limit) == whole[:2]


def test_standard_input_is_read_from_where_it_is(tagger, tmp_path, monkeypatch):
    """As a shell leaves it: after `read` has taken a line from a redirected file."""
    first, rest = LINES.read_bytes().split(b"\n", 1)
    expected = predict(tagger, LINES, tmp_path / "expected")[1:]
    (tmp_path / "compressed").write_bytes(first + b"\n" + gzip.compress(rest))
    for path in (LINES, tmp_path / "compressed"):
        with open(path) as stdin:
            os.lseek(stdin.fileno(), len(first) + 1, os.SEEK_SET)
            monkeypatch.setattr(sys, "stdin", stdin)
            assert predict(tagger, "-", tmp_path / "out") == expected
            assert "standard input: expected at least one" in refused(tagger, "-")


@pytest.mark.parametrize("name", ["lines.jsonl.gz", "lines.jsonl", "lines.jsonl.bz2"])
def test_compressed_input_is_read(tagger, tmp_path, name):
    """In gzip under any name; AllenNLP itself reads bzip2."""
    module = bz2 if name.endswith(".bz2") else gzip
    (tmp_path / name).write_bytes(module.compress(LINES.read_bytes()))
    expected = predict(tagger, LINES, tmp_path / "expected")
    assert predict(tagger, tmp_path / name, tmp_path / "out") == expected


GREETING = '{"sentence": "Hello ."}\n{"sentence": "naïve"}\n'


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("latin", GREETING.encode("latin-1"), ":2: expected UTF-8 text, found the byte 0xef"),
        ("wide", GREETING.encode("utf-16"), ":1: expected UTF-8 text, found the byte 0xff"),
        ("broken", b'\n{"sentence": "Hello ."}\n{"sentence"\n', ":3: expected a JSON object"),
        ("empty", b"", ": expected at least one instance to predict, found none."),
        ("blank", b"\n  \n", ": expected at least one instance to predict, found none."),
    ],
)
def test_input_that_cannot_be_read_is_named(tagger, tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert refused(tagger, tmp_path / name).startswith(f"{tmp_path / name}{message}")


@pytest.mark.parametrize("command, size", [("predict", 0), ("predict", -3), ("evaluate", 0)])
def test_what_is_called_wrongly_is_one_sentence(tagger, tmp_path, command, size):
    message = refusal(command, tagger, CORPUS, f"--batch-size={size}")
    assert message == f"Expected --batch-size of at least 1, found {size}."
    assert f"{tmp_path}/none" in refused(tagger, tmp_path / "none", command)
    assert "does not exist" in refused(tmp_path / "none.tar.gz", LINES, command)


@pytest.mark.parametrize(
    "command, part", [("predict", "model"), ("evaluate", "model"), ("evaluate", "loader")]
)
def test_nothing_in_an_untrusted_archive_is_executed(tagger, tmp_path, command, part):
    key = {"model": "model", "loader": "validation_data_loader"}[part]

    def change(config):
        config[key]["type"] = "subprocess.Popen"

    evil = repack(tagger, tmp_path / "evil.tar.gz", change)
    message = refused(evil, CORPUS, command)
    assert f"({key}.type in config.json) is refused: expected the registered name" in message


def test_allennlp_uses_it_though_it_imports_plugins_late(tagger, tmp_path):
    """The command itself: tests have imported the plugin before AllenNLP builds its parser."""
    (tmp_path / "empty").touch()
    command = [sys.executable, "-m", "allennlp", "predict", tagger, tmp_path / "empty"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    message = "expected at least one instance to predict, found none."
    assert done.stderr.splitlines()[-1].endswith(message)


def metrics_of_allennlp(archive, **reader):
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
    assert whole == pytest.approx(metrics_of_allennlp(tagger, max_instances=None), rel=1e-6)
    limit = '{"validation_dataset_reader.max_instances": 3}'
    part = evaluate(tagger, CORPUS, tmp_path, "-o", limit)
    assert part == pytest.approx(metrics_of_allennlp(tagger, max_instances=3), rel=1e-6)
    assert part["loss"] != pytest.approx(whole["loss"], rel=1e-3)


@pytest.mark.parametrize("make", ["tagger", "basic_classifier"])
def test_the_metrics_of_every_model_are_printed(make, tmp_path, capsys, request):
    if make == "tagger":
        archive, corpus = request.getfixturevalue("tagger"), CORPUS
    else:
        archive, corpus = classifier(tmp_path)
    metrics = evaluate(archive, corpus, tmp_path)
    assert format_metrics(metrics) in capsys.readouterr().out
    assert "accuracy" in metrics and "loss" in metrics


def classifier(tmp_path):
    """A model of AllenNLP without a table of its own, and its corpus."""
    corpus = tmp_path / "corpus.jsonl"
    lines = [{"text": text, "label": text} for text in ("good", "bad")]
    corpus.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    words = {"type": "embedding", "embedding_dim": 4}
    experiment = {
        "dataset_reader": {"type": "text_classification_json", "tokenizer": "whitespace"},
        "train_data_path": str(corpus),
        "model": {
            "type": "basic_classifier",
            "text_field_embedder": {"token_embedders": {"tokens": words}},
            "seq2vec_encoder": {"type": "boe", "embedding_dim": 4},
        },
        "data_loader": {"batch_size": 2},
        "trainer": {"num_epochs": 1, "optimizer": "adam"},
    }
    (tmp_path / "experiment.json").write_text(json.dumps(experiment))
    run("train", tmp_path / "experiment.json", "-s", tmp_path / "run")
    return tmp_path / "run/model.tar.gz", corpus


def test_an_output_that_cannot_be_written_is_refused_first(tagger, tmp_path):
    for command, option in (
        ("evaluate", "--predictions-output-file"),
        ("predict", "--output-file"),
    ):
        message = refusal(command, tagger, CORPUS, option, tmp_path / "none/out")
        assert message.endswith("none/out cannot be written: its folder does not exist.")


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("--predictor", "elmo-nre", "Expected `predictor` to be one of "),
        ("--predictor-args", '{"output', "--predictor-args: expected a JSON object, found "),
        ("--cuda-device", 99, "There is no GPU 99: PyTorch finds "),
    ],
)
def test_a_wrong_option_of_predict_is_one_sentence(tagger, option, value, message):
    assert refusal("predict", tagger, LINES, option, value).startswith(message)


def test_a_last_batch_that_is_not_full_is_evaluated(tagger, tmp_path):
    def drop_last(config):
        config["validation_data_loader"] = {"batch_size": 5, "drop_last": True}

    dropping = repack(tagger, tmp_path / "dropping.tar.gz", drop_last)
    whole = evaluate(dropping, CORPUS, tmp_path)["loss"]
    given = ("-o", '{"validation_data_loader.drop_last": true}')
    dropped = evaluate(dropping, CORPUS, tmp_path, *given)["loss"]
    assert whole != pytest.approx(dropped, rel=1e-3)


def test_each_input_needs_an_output(tagger, tmp_path):
    files = (f"{CORPUS},{CORPUS}", "--output-file", tmp_path / "metrics.json")
    message = refusal("evaluate", tagger, *files)
    assert message.endswith("the number of datasets being evaluated. Separate them by commas.")


@pytest.mark.parametrize(
    "missing, limit", [("instances", 0), ("labels to compare predictions with", None)]
)
def test_a_corpus_with_nothing_to_evaluate_is_refused_and_leaves_no_new_files(
    tagger, tmp_path, missing, limit
):
    (tmp_path / "corpus").write_text("Ada\nLind\n")
    (tmp_path / "older").touch()
    overrides = json.dumps({"validation_dataset_reader.max_instances": limit})
    for metrics, predictions in (("new", "older"), ("older", "new")):
        files = ("--output-file", tmp_path / metrics)
        files += ("--predictions-output-file", tmp_path / predictions)
        message = refusal("evaluate", tagger, tmp_path / "corpus", *files, "-o", overrides)
        assert f"{tmp_path}/corpus: expected {missing}, found none" in message
        assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "older"]


def test_a_learning_rate_is_searched_for_a_task_with_our_trainer(tmp_path, monkeypatch):
    plotted = []
    monkeypatch.setattr(find_learning_rate, "_save_plot", lambda *values: plotted.append(values))
    experiment = FIXTURES / "experiments/ner.jsonnet"
    run("find-lr", experiment, "-s", tmp_path / "run", "--num-batches", 11)
    ((rates, losses, _),) = plotted
    assert rates[0] == pytest.approx(1e-5) and len(rates) == len(losses) == 12
    assert all(loss > 0 for loss in losses)


def test_an_experiment_without_a_trainer_is_refused(tmp_path):
    (tmp_path / "x.jsonnet").write_text("{}")
    with pytest.raises(ConfigurationError, match="Expected an experiment with a `trainer`"):
        run("find-lr", tmp_path / "x.jsonnet", "-s", tmp_path / "run")
