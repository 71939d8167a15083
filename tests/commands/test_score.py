import csv
import json
import os
import shutil
import subprocess
import sys
from functools import partial

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

from tests.bilm.pretraining.tiny import make_experiment
from tests.commands import running

run = partial(running.run, "elmo-score")
failure = partial(running.failure, "elmo-score")

TEXT = "They play a play .\n\nNobody began the play .\n"


@pytest.fixture
def folder(in_folder):
    (in_folder / "text.txt").write_text(TEXT)
    return in_folder


@pytest.mark.parametrize("offset, refused", [(0, False), (4, True)])
def test_standard_input_that_was_read_in_part_is_refused(folder, capsys, offset, refused):
    """As after a shell's `read` from a redirected file."""
    before = os.dup(0)
    try:
        with open(folder / "text.txt") as file:
            os.lseek(file.fileno(), offset, os.SEEK_SET)
            os.dup2(file.fileno(), 0)
        if refused:
            assert "found a file at byte 4" in failure("-")
        else:
            run("-", "--sentences")
            assert len(rows(capsys.readouterr().out)) == 2
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.parametrize("by", ["--bilm", "ELMO_BILM", "zip"])
def test_the_bilm_may_have_one_name(folder, capsys, monkeypatch, tmp_path, language_model, by):
    run("text.txt")
    expected = capsys.readouterr().out
    for name in ("ELMO_OPTIONS", "ELMO_WEIGHTS"):
        monkeypatch.delenv(name)
    arguments = []
    if by == "ELMO_BILM":
        monkeypatch.setenv(by, str(language_model))
    else:
        zipped = shutil.make_archive(str(tmp_path / "lm"), "zip", language_model)
        arguments = ["--bilm", zipped if by == "zip" else language_model]
    run("text.txt", *arguments)
    assert capsys.readouterr().out == expected


def rows(text):
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


def test_words_and_sentences_have_the_same_sums(folder, capsys):
    run("text.txt")
    captured = capsys.readouterr()
    words = rows(captured.out)
    run("text.txt", "--sentences")
    sentences = rows(capsys.readouterr().out)
    assert "3 lines, 10 words, 12 predictions per direction. Perplexity " in captured.err
    assert [row["word"] for row in words] == [
        *("<S>", "They", "play", "a", "play", ".", "</S>"),
        *("<S>", "Nobody", "began", "the", "play", ".", "</S>"),
    ]
    assert [row["position"] for row in words] == [str(place) for place in range(7)] * 2
    assert [row["word"] for row in words if row["known"] == "no"] == ["Nobody"]
    assert [row["line"] for row in sentences] == ["1", "3"]
    for sentence in sentences:
        for direction in ("forward", "backward"):
            of_line = [row for row in words if row["line"] == sentence["line"]]
            total = sum(float(row[direction]) for row in of_line if row[direction])
            assert float(sentence[direction]) == pytest.approx(total, abs=1e-5)
            perplexity = 2.0 ** (total / (int(sentence["words"]) + 1))
            found = float(sentence[f"{direction}_perplexity"])
            assert found == pytest.approx(perplexity, rel=1e-5)


def test_perplexity_is_that_of_evaluate_to_six_digits(tmp_path, capsys):
    experiment = make_experiment(tmp_path, "sentences")
    train_model(Params(experiment), tmp_path / "run")
    archive = tmp_path / "run" / "model.tar.gz"
    heldout = tmp_path / "heldout.txt"
    running.run("evaluate", archive, heldout, "--output-file", tmp_path / "metrics.json")
    expected = json.loads((tmp_path / "metrics.json").read_text())
    running.run("elmo-export", archive, tmp_path / "bilm")
    capsys.readouterr()
    options = ("--options-file", tmp_path / "bilm" / "options.json", "--sentences")
    for weights in (archive, tmp_path / "bilm" / "weights.hdf5"):
        run(heldout, "--weight-file", weights, *options)
        said = capsys.readouterr().err
        for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
            label = {"perplexity": "Perplexity"}.get(name, name.partition("_")[0])
            assert f"{label} {expected[name]:.6g}" in said.replace(".,", ",")


def test_pairs_are_compared(folder, capsys):
    (folder / "sets").mkdir()
    for name, bad in (("one", "a play They."), ("two", "began of the.")):
        pair = {"sentence_good": "They play.", "sentence_bad": bad, "UID": name}
        (folder / "sets" / f"{name}.jsonl").write_text(f"{json.dumps(pair)}\n")
    run("--pairs", "sets")
    table = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[1] for row in table[2:]] == ["one", "two", "all"]
    # The sentences of a pair, scored as a text.
    (folder / "text.txt").write_text("They play .\na play They .\n")
    run("text.txt", "--sentences")
    good, bad = rows(capsys.readouterr().out)
    is_right = float(good["both"]) < float(bad["both"])
    assert table[2].endswith(f"{100.0 * is_right:.1f} |")


def test_pairs_that_are_not_utf_8_can_be_read(folder, capsys):
    pair = b'{"sentence_good": "the play \xff", "sentence_bad": "play the", "UID": "a"}\n'
    (folder / "pairs.jsonl").write_bytes(pair)
    run("--pairs", "pairs.jsonl", "--decoding-errors", "replace")
    assert "| a | 1 |" in capsys.readouterr().out


def test_a_reader_may_close_the_output_early(folder):
    program = "from elmo_plugin.commands.main import main; main()"
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", program, "score", "text.txt"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment)
    os.close(writer)
    assert done.returncode == 1
    assert b"Error" not in done.stderr and b"Exception" not in done.stderr
