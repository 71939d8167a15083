"""`vocabulary`, `experiments`, `layer-weights`, `models` and `doctor`."""

import gzip
import json
from functools import partial
from pathlib import Path

import pytest
import torch

from elmo_plugin.bilm.files.published import PUBLISHED
from elmo_plugin.commands import doctor
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_counts
from elmo_plugin.util.files import shipped
from tests.analysis.test_layer_weights import placed
from tests.commands import running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("the owl saw the owl\n\nthe cat saw it\n")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"the owl slept\n"))
    return tmp_path


run = partial(running.run, "elmo-vocabulary")


def test_the_names_of_bilms_are_listed(capsys):
    running.run("elmo-models")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(PUBLISHED)
    shown = {line.split()[0]: line for line in lines}
    for name, published in PUBLISHED.items():
        assert published.text in shown[name] and published.size in shown[name]
        place = "comes with the project" if published.is_shipped else published.options_file
        assert shown[name].endswith(place)


def test_words_are_written_with_their_counts(folder, capsys):
    run("a.txt", "b.txt", "out.txt")
    assert (folder / "out.txt").read_text() == (
        "<S>\t3\n</S>\t3\n<UNK>\t0\nthe\t4\nowl\t3\nsaw\t2\ncat\t1\nit\t1\nslept\t1\n"
    )
    assert capsys.readouterr().out == (
        "out.txt: 9 words. Of 12 tokens in 3 sentences they cover 100.00%.\n"
    )


def test_patterns_sizes_and_counts_are_understood(folder, capsys):
    (folder / "out").touch()
    run("*.txt*", "out", "--size", 6, "--min-count", 3, "--force")
    assert (folder / "out").read_text() == "<S>\t3\n</S>\t3\n<UNK>\t5\nthe\t4\nowl\t3\n"
    assert "5 words. Of 12 tokens in 3 sentences they cover 58.33%" in capsys.readouterr().out


def test_the_file_is_a_vocabulary(folder):
    run("a.txt", "out.txt", "--size", 5)
    written = SoftmaxVocabulary.from_text(file="out.txt")
    counted = SoftmaxVocabulary.from_text(text="a.txt", size=5)
    assert softmax_counts(written) == softmax_counts(counted)
    assert written.get_token_to_index_vocabulary("softmax_labels") == (
        counted.get_token_to_index_vocabulary("softmax_labels")
    )


def test_undecodable_bytes_are_counted_when_asked_for(folder):
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    run("latin.txt", "out.txt", "--decoding-errors", "replace")
    assert (folder / "out.txt").read_text().endswith("\ncaf\ufffd\t1\n")


def contents(folder: Path):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*sonnet")}


def test_the_copy_holds_every_experiment_and_library(tmp_path, capsys):
    running.run("elmo-experiments", tmp_path / "mine")
    copied = contents(tmp_path / "mine")
    assert copied == contents(shipped("experiments"))
    assert not (tmp_path / "mine/results").exists()
    number = sum(n.suffix == ".jsonnet" and n.parts[0] != "studies" for n in copied)
    assert f"{tmp_path / 'mine'}: {number} experiments. " in capsys.readouterr().out
    running.run("elmo-experiments", tmp_path / "studies/mine")
    assert f"{tmp_path / 'studies/mine'}: {number} experiments. " in capsys.readouterr().out


def test_a_table_of_several_models(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, at in (("one", "both"), ("two", "input")):
        placed(tmp_path / name, at)
    running.run("elmo-layer-weights", "one", "two", "--json", "weights.json")
    table = capsys.readouterr().out.splitlines()
    assert table[2] == "| one | elmo-srl | input | 0.090 | 0.245 | 0.665 | 2.000 |"
    assert [row.split(" | ")[2] for row in table[2:]] == ["input", "output", "input"]
    found = json.loads((tmp_path / "weights.json").read_text())
    assert [mix["archive"] for mix in found] == ["one", "one", "two"]
    assert [mix["gamma"] for mix in found] == [2.0, 3.0, 2.0]


def test_doctor_shows_what_there_is_and_what_is_missing(folder, capsys, monkeypatch):
    # Compiled before, where they are kept.
    library = compiled_kernels()
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/caches")
    monkeypatch.setenv("ELMO_CACHE", str(folder / "layers"))
    monkeypatch.setenv("CXX", " ")
    version = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "ray" else version(name))
    running.run("elmo-doctor")
    shown = capsys.readouterr().out
    assert f" used by torch {torch.__version__}\n" in shown
    assert "\nmissing      ray (for the extra `ray`)\n" in shown
    message = "/dev/null/caches/elmo_plugin/* cannot be written: /dev/null is not a folder.\n"
    assert f"downloads    {message}" in shown
    assert f"layers       {folder / 'layers'}\n" in shown
    assert "\ncompiler     c++ (" in shown
    assert shown.endswith(f"\nkernels      {library._name if library else 'none'}\n")


def test_doctor_ends_with_what_is_broken(monkeypatch, capsys):
    def import_module(name):
        raise ImportError(f"{name} is broken")

    monkeypatch.setattr(doctor, "import_module", import_module)
    with pytest.raises(SystemExit, match="torch is broken"):
        running.run("elmo-doctor")
    assert "\nPython " in capsys.readouterr().out
