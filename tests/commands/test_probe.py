import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

from elmo_plugin import load_bilm
from elmo_plugin.analysis.representations import BilmLayers
from elmo_plugin.bilm import fingerprint
from elmo_plugin.commands import probe
from elmo_plugin.commands.main import main

PROJECT = Path(__file__).resolve().parents[2]
CORPORA = PROJECT / "fixtures/corpora"
# Kills itself after some commits of vectors, of four sentences each.
KILLED = """
import os, signal, sys
from elmo_plugin.analysis import features, tag_probe
from elmo_plugin.commands.main import main
tag_probe._MAX_ITERATIONS = 20
features._SENTENCES_PER_COMMIT = 4
commit, left = features.Store.commit, [int(sys.argv[1])]
def counted(*arguments, **progress):
    commit(*arguments, **progress)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
features.Store.commit = counted
main(sys.argv[2:])
"""


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch):
    monkeypatch.setattr("elmo_plugin.analysis.tag_probe._MAX_ITERATIONS", 20)


def run(*arguments):
    main(["probe", *map(str, arguments)])


def table(capsys, *arguments):
    """The cells of each row that is printed."""
    run(*arguments)
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len({len(row) for row in rows}) == 1
    return rows


def test_tags_of_the_fixture_are_probed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(PROJECT)
    rows = table(capsys, "pos", "--json", tmp_path / "new" / "tags.json")
    assert [row[:2] for row in rows[2:]] == [
        ["most frequent tag of each word", ""],
        ["static vectors", "vectors.100d.txt.gz"],
        *([name, layer] for name in ("random biLM", "biLM") for layer in LAYERS),
        ["biLM", "mix"],
    ]
    found = json.loads((tmp_path / "new" / "tags.json").read_text())
    assert found["bilm_fingerprint"] == fingerprint(load_bilm())
    assert found["options_file"] == "fixtures/bilm/options.json"
    assert found["glove"] == "fixtures/corpora/glove/vectors.100d.txt.gz"
    assert found["num_words"] == {"train": 611, "dev": 163, "test": 179}
    assert found["tag"] == "upos" and "PROPN" in found["tags"]
    for row, score in zip(rows[2:], found["scores"], strict=True):
        assert row[:2] == [score["representation"], score["layer"]]
        assert row[2:4] == [f"{100 * score[part]['overall']:.2f}" for part in ("dev", "test")]
        low, high = score["test"]["interval"]
        assert low <= score["test"]["overall"] <= high
        assert row[4] == f"{100 * low:.2f} to {100 * high:.2f}"
        assert ("not converged" in row[7]) == (score["converged"] is False)
        assert row[5] == shown_difference(score["from_previous"], 2)
    with_difference = [row[:2] for row in rows[2:] if row[5]]
    assert with_difference == [
        *([name, layer] for name in ("random biLM", "biLM") for layer in LAYERS[1:]),
        ["biLM", "mix"],
    ]
    assert sum(found["scores"][-1]["layer_weights"]) == pytest.approx(1.0)
    check_samples(found["scores"], [score["test"]["interval"] for score in found["scores"]])


LAYERS = ("token layer", "layer 1", "layer 2")


def check_samples(scores, intervals):
    previous = None
    for score, interval in zip(scores, intervals, strict=True):
        samples = numpy.array(score["samples"])
        assert numpy.quantile(samples, [0.025, 0.975]) == pytest.approx(interval, abs=1e-5)
        if score["from_previous"] is not None:
            found = numpy.quantile(samples - previous, [0.025, 0.975])
            assert found == pytest.approx(score["from_previous"]["interval"], abs=1e-5)
        previous = samples


def shown_difference(found, num_decimals):
    if found is None:
        return ""
    value, low, high = (
        f"{100 * x:+.{num_decimals}f}" for x in (found["value"], *found["interval"])
    )
    assert found["interval"][0] <= found["value"] <= found["interval"][1]
    return f"{value} ({low} to {high})"


def test_columns_and_conllu_give_the_same(capsys):
    chosen = ["--representations", "static"]
    ner = [f"--{split}={CORPORA}/ner/{split}.conll" for split in ("train", "dev", "test")]
    conllu = table(capsys, "pos", "--tag", "xpos", *chosen)
    assert table(capsys, "pos", *ner, "--columns", 1, 2, *chosen) == conllu
    assert table(capsys, "pos", *ner, "--columns", -4, -3, *chosen) == conllu


@pytest.mark.parametrize("probe", ["pos", "wsd"])
def test_cove_has_a_row_for_each_layer_where_an_encoder_is_named(probe, capsys):
    cove = ["--cove", PROJECT / "fixtures/cove/weights.pth"]
    static = ["static vectors", "vectors.100d.txt.gz"]
    layers = [["CoVe", "layer 1"], ["CoVe", "layer 2"]]
    for chosen, expected in ((["static", "cove"], [static, *layers]), (["cove"], layers)):
        rows = table(capsys, probe, *cove, "--representations", *chosen)
        assert [row[:2] for row in rows[-len(expected) :]] == expected
        assert static in expected or static not in [row[:2] for row in rows]


def test_it_computes_in_bfloat16_when_asked(capsys, monkeypatch):
    dtypes = []

    class Recorded(BilmLayers):
        def __init__(self, bilm, *arguments):
            super().__init__(bilm, *arguments)
            dtypes.append(next(bilm.parameters()).dtype)

    monkeypatch.setattr(probe, "BilmLayers", Recorded)
    chosen = ["wsd", "--representations", "random", "bilm"]
    rows = table(capsys, *chosen, "--bfloat16")
    assert [row[:2] for row in rows] == [row[:2] for row in table(capsys, *chosen)]
    assert dtypes == 2 * [torch.bfloat16] + 2 * [torch.float32]


def test_senses_of_the_fixture_are_disambiguated(tmp_path, capsys):
    rows = table(capsys, "wsd", "--json", tmp_path / "senses.json")
    head, _, words, first, most_frequent, *others = rows
    groups = ["tales", "news", "NOUN", "VERB", "ADJ", "ADV", "all"]
    assert head[2:] == [*groups, "all, 95 %", "from the row above, 95 %"]
    assert words[2:] == ["9", "8", "10", "3", "2", "2", "17", "", ""]
    # Counted by hand: of 9 words in `tales` 7 have their first sense, of 8 in `news` 4.
    assert first[2:4] == ["77.8", "50.0"] and first[-3] == "64.7"
    assert most_frequent[2:4] == ["55.6", "62.5"]
    assert [row[:2] for row in others] == [
        ["static vectors", "vectors.100d.txt.gz"],
        *([name, layer] for name in ("random biLM", "biLM") for layer in LAYERS),
    ]
    found = json.loads((tmp_path / "senses.json").read_text())
    # Lanterns and `slowly` are in the test set only.
    assert (found["num_words"], found["num_words_with_lemma_in_training"]) == (17, 15)
    for row, score in zip(rows[3:], found["scores"], strict=True):
        f1 = [score["scores"][group]["f1"] for group in groups]
        low, high = score["interval"]
        expected = [f"{100 * value:.1f}" for value in [*f1, low, high]]
        assert row[2:-1] == [*expected[:-2], " to ".join(expected[-2:])]
        assert row[-1] == shown_difference(score["from_previous"], 1)
        assert low <= f1[-1] <= high
    check_samples(found["scores"], [score["interval"] for score in found["scores"]])


@pytest.mark.parametrize("probe, commits", [("pos", 40), ("wsd", 2)])
def test_killed_and_started_again_it_prints_the_same(tmp_path, capsys, probe, commits):
    chosen = ["--representations", "random", "bilm"]
    whole = table(capsys, probe, *chosen)
    arguments = ["probe", probe, *map(str, chosen), "--cache", str(tmp_path)]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(commits), *arguments],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL
    assert table(capsys, *arguments[1:]) == whole
    # Nothing is left to compute.
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.float16")}
    assert table(capsys, *arguments[1:]) == whole
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.float16")} == files
