"""`elmo train`, `elmo evaluate` and `elmo predict`: from a corpus to answers."""

import gzip
import io
import json
import os
import shlex
import sys

import pytest
import torch
from allennlp.commands.train import train_model_from_file

from elmo_plugin.commands.main import main
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
    shown, stdout = io.StringIO(), sys.stdout
    sys.stdout = shown
    try:
        elmo(f"{TRAIN} --test {NER}/test.conll -s {out}")
    finally:
        sys.stdout = stdout
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
    assert shown.splitlines()[-1].startswith(f"elmo predict {out} 'Ada Lovelace")


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
    elmo(f"train tagger {corpus} {options} -s {tmp_path}/out")
    assert '  tags: "plain",\n' in (tmp_path / "out/experiment.jsonnet").read_text()
    assert "accuracy" in capsys.readouterr().out


MISTAKES = [
    ("", "Expected -s OUT, the folder for the model, or --check-only."),
    ("-s full", "full is not empty. Give --recover to continue the training in it, --force"),
    ("-s new --set a", "--set: expected NAME=VALUE such as batch_size=8, found a."),
    ("-s new --set foo=1", "foo"),
    ("-s new --set elmo.foo=1", "foo"),
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
