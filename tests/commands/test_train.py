"""`elmo train`, `elmo evaluate` and `elmo predict`: from a corpus to answers."""

import csv
import gzip
import io
import json
import os
import re
import shlex
import sys
from unittest.mock import patch

import pytest
import torch
from allennlp.commands.train import train_model_from_file

from elmo_plugin.commands.experiment_file import make_experiment
from elmo_plugin.commands.main import main
from tests.commands import running
from tests.guide import FIXTURES

NER = FIXTURES / "corpora/ner"
SMALL = "--set hidden_sizes=[8,8] batch_size=16 save_every_num_batches=null"
TRAIN = f"train ner {NER}/train.conll --dev {NER}/dev.conll --epochs 1 --seed 3 {SMALL}"
TEXT = "Ada lives in London .\n\nShe left .\n"


def elmo(line):
    main(shlex.split(line))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a model, and what the command printed."""
    out = tmp_path_factory.mktemp("trained") / "ner"
    shown = io.StringIO()
    with patch.object(sys, "argv", ["elmo"]), patch.object(sys, "stdout", shown):
        elmo(f"{TRAIN} --test {NER}/test.conll -s {out}")
    return out, shown.getvalue()


def weights(folder):
    return torch.load(folder / "best.th", weights_only=True)


def test_corpora_scores_and_the_next_command_are_shown(trained):
    out, shown = trained
    lines = [line.split() for line in shown.splitlines()]
    assert lines[0] == ["train", "dev", "test"] and lines[1][0] == "instances"
    assert ["dev,", "best", "epoch"] in lines and ["test"] in lines
    metrics = json.loads((out / "metrics.json").read_text())
    f1 = metrics["best_validation_f1-measure-overall"]
    assert ["f1-measure-overall", f"{f1:.4f}"] in lines
    # The log is in the folder.
    assert " - INFO - " not in shown and " - INFO - " in (out / "out.log").read_text()
    *command, text = shlex.split(shown.splitlines()[-1])
    assert command == ["elmo", "predict", str(out)]
    words = [line.split()[0] for line in (NER / "train.conll").read_text().splitlines() if line]
    assert text and " ".join(words).removeprefix("-DOCSTART- ").startswith(text)


def test_the_experiment_can_be_trained_by_allennlp_whatever_the_environment(
    trained, tmp_path, monkeypatch
):
    for name, value in {"ELMO_GLOVE": "", "ELMO_SEED": "5", "ELMO_BILM": "none"}.items():
        monkeypatch.setenv(name, value)
    train_model_from_file(trained[0] / "experiment.jsonnet", tmp_path / "again")
    first, again = weights(trained[0]), weights(tmp_path / "again")
    assert first.keys() == again.keys()
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_plain_tags_are_seen_and_written_into_the_experiment(tmp_path, capsys):
    corpus = tmp_path / "a.conllu"
    row = "{}\t{}\t_\t{}\tX\t_\t_\t_\t_\t_\n"
    sentences = [[("They", "PRON"), (f"play{n}", "VERB")] for n in range(40)]
    text = "".join(
        "".join(row.format(n, *word) for n, word in enumerate(words, start=1)) + "\n"
        for words in sentences
    )
    corpus.write_text(text)
    options = "--no-elmo --epochs 1 --set hidden_sizes=[4,4] dev_fraction=0.2"
    elmo(f"train tagger {corpus} {options} --check-only")
    shown = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert sum(map(int, shown["instances"])) == 40 and shown["PRON"] == shown["VERB"]
    assert shown["tags:"] == ["plain"]
    # There is nothing to continue yet.
    elmo(f"train tagger {corpus} {options} -s {tmp_path}/out --recover")
    assert '  tags: "plain",\n' in (tmp_path / "out/experiment.jsonnet").read_text()
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("column, tags", [(2, "plain"), (4, "spans")])
def test_the_kind_of_tags_in_a_column_is_seen(column, tags):
    jsonnet, _ = make_experiment(
        "tagger", str(NER / "train.conll"), settings=[f"tag_column={column}"]
    )
    assert f'    tags: "{tags}",\n' in jsonnet


MISTAKES = [
    ("", "Expected -s OUT, the folder for the model, or --check-only."),
    ("-s full", "full is not empty. Give --recover to continue the training in it, --force"),
    ("-s new --set a", "--set: expected NAME=VALUE such as batch_size=8, found a."),
    ("-s new --set foo=1", "foo"),
    ("-s new --set elmo.foo=1", "foo"),
    ("-s new --no-elmo --set elmo.dropout=0.2", "Leave out --no-elmo."),
    ("-s new --vectors none", "No such file: looked for none and none.gz"),
    ("-s new --test none", "No such file: looked for none and none.gz"),
]


@pytest.mark.parametrize("options, message", MISTAKES)
def test_a_mistake_is_one_sentence_before_anything_is_written(
    tmp_path, monkeypatch, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    with pytest.raises(SystemExit) as stopped:
        elmo(f"{TRAIN} {options}")
    assert stopped.value.code.startswith("elmo train: ") and "\n" not in stopped.value.code
    assert message in stopped.value.code
    assert os.listdir(tmp_path) == ["full"] and os.listdir(tmp_path / "full") == ["file"]


ROWS = "".join(f"a film {n},{n % 2}\n" for n in range(40))
BAD_CORPORA = [
    ("classifier a.csv", "text,genre\n" + ROWS, "found text, genre. Add --set label=genre."),
    ("classifier a.csv --set text=a", "a,b,c\nx,y,z\n", "found a, b, c. Add --set label=NAME."),
    (
        "classifier a.csv",
        "text,label\na film,\na film,\n",
        "labels (a column of the file), found none in any of its",
    ),
    ("classifier a.txt", "text,label\n" + ROWS, "names that end in .csv, .tsv or .jsonl."),
    ("classifier good.csv --dev a.csv", "text\na film\n", "found text. Add a column of labels."),
    ("classifier good.csv --test a.csv", "text\na film\n", "found text. Add a column of labels."),
    ("pairs a.tsv", "premise\thypothesis\tsame\na\tb\t1\n", "Add --set label=same."),
    ("ner good.conll --dev a.conll", "Ada\nleft\n", "none in any of its 1 instances. Dev needs"),
    ("tagger a.csv", "text,label\n" + ROWS, "or a dev file, or see in docs/data.md"),
]


@pytest.mark.parametrize("line, text, message", BAD_CORPORA)
def test_a_corpus_without_labels_stops_before_training(tmp_path, monkeypatch, line, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("text,label\n" + ROWS)
    (tmp_path / "good.conll").write_text("Ada B-PER\nleft O\n")
    (tmp_path / line.split(" --set")[0].split()[-1]).write_text(text)
    for option in ("--check-only", "-s out"):
        with pytest.raises(SystemExit) as stopped:
            elmo(f"train {line} {option}")
        assert message in stopped.value.code and "\n" not in stopped.value.code
    assert not (tmp_path / "out").exists()


def test_a_task_without_its_own_split_needs_dev(tmp_path):
    corpus = FIXTURES / "corpora/srl/train.gold_conll"
    with pytest.raises(SystemExit) as stopped:
        elmo(f"train srl {corpus} --check-only")
    assert stopped.value.code.endswith("needs a corpus that chooses the best epoch: add --dev.")


def predicted(capsys, line):
    elmo(f"predict {line}")
    shown = capsys.readouterr()
    return [json.loads(answer) for answer in shown.out.splitlines()], shown.err


SENTENCES = [sentence.split() for sentence in TEXT.split("\n\n")]


def columns(row, sentences=SENTENCES):
    """A line per word, from `row` and the number and the word."""
    rows = ("".join(map(row.format, range(1, 10), words)) for words in sentences)
    return "\n".join(rows)


@pytest.mark.parametrize(
    "name, content, format",
    [
        ("a.txt", TEXT, "text, a sentence per line"),
        ("noname", "\n\n" + TEXT, "text, a sentence per line"),
        ("a.txt", "".join(json.dumps({"tokens": s}) + "\n" for s in SENTENCES), "JSON lines"),
        ("a.txt", columns("{1} O\n"), "columns"),
        ("a.dat", "-DOCSTART- O\n\n" + columns("{1} B-PER\n"), "columns"),
        ("a.csv", columns("{1},O\n"), "columns between commas"),
        ("a.txt", columns("{0}\t{1}\t_\tO\t_\t_\t_\t_\t_\t_\n"), "CoNLL-U"),
    ],
)
@pytest.mark.parametrize("source", ["file", "gzip", "stdin"])
def test_a_format_is_recognised_by_its_content(
    trained, tmp_path, capsys, monkeypatch, name, content, format, source
):
    path = tmp_path / name
    path.write_text(content)
    named = str(path)
    if source == "gzip":
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(content.encode()))
        named = str(path)
    if source == "stdin":
        monkeypatch.setattr(sys, "stdin", open(path))
        path, named = "-", "standard input"
    answers, said = predicted(capsys, f"{trained[0]} {path}")
    assert [each["tokens"] for each in answers] == SENTENCES
    assert f"{named}: read as {format}" in said


def test_a_text_is_predicted_and_what_looks_like_a_missing_file_is_not(trained, capsys):
    answers, said = predicted(capsys, f"{trained[0]} 'Ada lives in London .'")
    assert [each["tokens"] for each in answers] == SENTENCES[:1] and said == ""
    for path in ("none.txt", "folder/none", "none.conll.gz"):
        with pytest.raises(SystemExit) as stopped:
            elmo(f"predict {trained[0]} {path}")
        assert f"No such file: {path}. If it is a text" in stopped.value.code
    answers, _ = predicted(capsys, f"{trained[0]} none.txt --input-format text")
    assert answers[0]["tokens"] == ["none.txt"]


def test_an_error_names_the_line_and_answers_before_it_are_printed(trained, tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"sentence": "Ada ."}\n\n{"sentence": ""}\n')
    with pytest.raises(SystemExit) as stopped:
        elmo(f"predict {trained[0]} {tmp_path}/a.jsonl --batch-size 1")
    assert f'{tmp_path}/a.jsonl:3: expected "sentence"' in stopped.value.code
    assert json.loads(capsys.readouterr().out)["tokens"] == ["Ada", "."]


@pytest.mark.parametrize(
    "settings, message",
    [('{"a": 1}', "NerPredictor has no settings ['a']"), ("[1]", "--predictor-args: expected a")],
)
def test_wrong_settings_of_a_predictor_are_refused(trained, settings, message):
    with pytest.raises(SystemExit) as stopped:
        elmo(f"predict {trained[0]} Hello --predictor-args '{settings}'")
    assert message in stopped.value.code


def test_an_error_in_a_corpus_from_standard_input_names_it(trained, tmp_path, monkeypatch):
    (tmp_path / "a").write_text("-DOCSTART- O\n\nAda B-PER\nlives\n")
    monkeypatch.setattr(sys, "stdin", open(tmp_path / "a"))
    with pytest.raises(SystemExit) as stopped:
        elmo(f"predict {trained[0]}")
    assert "predict: standard input:4: expected 2 columns" in stopped.value.code


def test_a_file_is_complete_or_absent_and_not_replaced_unasked(trained, tmp_path, capsys):
    out = tmp_path / "out"
    (tmp_path / "a.txt").write_text(TEXT)
    elmo(f"predict {trained[0]} {tmp_path}/a.txt --format conll -o {out}")
    words = [line.partition(" ")[0] for line in out.read_text().splitlines()]
    assert words == [*SENTENCES[0], "", *SENTENCES[1], ""]
    for options, message in (("", "exists. Give --force"), ("--force --format csv", "of json, ")):
        with pytest.raises(SystemExit) as stopped:
            elmo(f"predict {trained[0]} {tmp_path}/a.txt -o {out} {options}")
        assert message in stopped.value.code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "out"]


def test_pairs_are_read_from_columns_and_written_as_csv(tmp_path, capsys):
    """By the name of a model that comes with the project."""
    (tmp_path / "a.txt").write_text('id,premise,hypothesis\n1,"A dog, old.",It runs.\n')
    elmo(f"predict snli {tmp_path}/a.txt --format csv")
    shown = capsys.readouterr()
    assert "read as CSV with the columns id, premise, hypothesis" in shown.err
    (row,) = csv.DictReader(shown.out.splitlines())
    assert row["premise_tokens"] == "A dog , old ."
    names = ["probabilities.entailment", "probabilities.neutral", "probabilities.contradiction"]
    assert sum(float(row[name]) for name in names) == pytest.approx(1)
    with pytest.raises(SystemExit) as stopped:
        elmo("predict snli 'A dog runs.'")
    assert 'expected a JSON object like {"premise": ' in stopped.value.code


def test_an_archive_that_is_none_lists_those_that_come_with_the_project(tmp_path):
    for name in ("nerr", tmp_path):
        with pytest.raises(SystemExit) as stopped:
            elmo(f"evaluate {name} {NER}/dev.conll")
        expected = r"or one of coref, ner, .*, found (no such file|a folder)"
        assert re.search(expected, stopped.value.code)


def test_metrics_of_each_file_are_printed_and_written(trained, tmp_path, capsys):
    """Also of files of one name."""
    (tmp_path / "dev.conll").write_text("Ada B-PER\nlives O\n")
    paths = [f"{NER}/dev.conll", f"{tmp_path}/dev.conll"]
    elmo(f"evaluate {trained[0]} {' '.join(paths)} -o {tmp_path}/m.json")
    written = json.loads((tmp_path / "m.json").read_text())
    assert list(written) == paths
    shown = capsys.readouterr().out
    for path in paths:
        f1 = written[path]["f1-measure-overall"]
        assert re.search(rf"{path}\nf1-measure-overall +{f1:.4f}\n", shown)
    assert written[paths[0]]["accuracy"] != written[paths[1]]["accuracy"]


def test_allennlp_predict_reads_text_too(trained, tmp_path):
    (tmp_path / "a.txt").write_text(TEXT)
    out = tmp_path / "out"
    running.run(
        "predict", trained[0] / "model.tar.gz", tmp_path / "a.txt", "--output-file", out, "--silent"
    )
    tokens = [json.loads(line)["tokens"] for line in out.read_text().splitlines()]
    assert tokens == SENTENCES
