"""Folders of a biLM: whole or not at all, read by others, and on a stand-in for the Hub."""

import json
import os
import random
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import h5py
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.elmo import batch_to_ids

from elmo_plugin import embed_sentences, save_weights
from elmo_plugin.bilm import Bilm, BilmOptions, load_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax
from tests.bilm.oracle import assert_layers_equal, random_batch
from tests.bilm.token_files import save_token_bilm
from tests.bilm.trained import COUNTS, WORDS

BILM = ["options.json", "weights.hdf5"]
ALL = ["options.json", "softmax.hdf5", "vocabulary.txt", "weights.hdf5"]


@pytest.fixture
def softmax():
    return SoftmaxWeights(torch.randn(len(WORDS), 6), torch.randn(len(WORDS)), WORDS, COUNTS)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("dtype, most", [("float32", 1e-5), ("float16", 1e-3)])
@pytest.mark.parametrize("changes", [dict(), dict(n_layers=3, activation="tanh", n_highway=0)])
def test_allennlps_elmo_reads_an_export(make_bilm, tmp_path, dtype, most, changes):
    save_bilm(make_bilm(seed=3, **changes), tmp_path / "out", dtype=dtype)
    files = [str(tmp_path / "out" / name) for name in BILM]
    ours, theirs = load_bilm(*files, stateful=True), AllenNlpElmo(*files, 1, dropout=0.0)
    generator = random.Random(1)
    for _ in range(3):
        ids = batch_to_ids(random_batch(generator, 3, 6))
        expected = theirs._elmo_lstm(ids)["activations"]
        assert_layers_equal(ours(ids).layers, torch.stack(expected), most)


def test_an_exported_language_model_is_read_back_bit_for_bit(make_bilm, softmax, tmp_path):
    bilm = make_bilm(seed=1, bidirectional=False)
    files = save_bilm(bilm, tmp_path / "out", softmax)
    assert sorted(file.name for file in files) == names(tmp_path / "out") == ALL
    assert names(tmp_path) == ["out"]
    assert_same(Bilm.from_pretrained(tmp_path / "out"), bilm)
    found = find_softmax(tmp_path / "out" / "softmax.hdf5", bilm.options)
    assert torch.equal(found.weight, softmax.weight)
    assert (found.words, found.counts) == (WORDS, COUNTS)


def test_options_are_complete_and_keep_what_else_they_said(make_options, tmp_path, softmax):
    source = {**make_options(), "n_train_tokens": 768648884, "n_tokens_vocab": 1}
    del source["bidirectional"], source["lstm"]["proj_clip"], source["char_cnn"]["n_highway"]
    source["lstm"]["cell_clip"] = 0
    save_bilm(Bilm(BilmOptions.from_dict(source)), tmp_path / "out", softmax)
    written = json.loads((tmp_path / "out" / "options.json").read_text())
    assert written["bidirectional"] is True
    assert (written["n_train_tokens"], written["n_tokens_vocab"]) == (768648884, len(WORDS))
    assert (written["char_cnn"]["n_characters"], written["char_cnn"]["n_highway"]) == (262, 0)
    # TensorFlow would clip to 0 what we and AllenNLP do not clip.
    assert (written["lstm"]["cell_clip"], written["lstm"]["proj_clip"]) == (None, None)


@pytest.mark.parametrize("is_there", [False, True])
def test_an_interrupted_export_leaves_nothing_or_what_was_there(
    make_bilm, softmax, tmp_path, monkeypatch, is_there
):
    def fail(*_, **__):
        raise KeyboardInterrupt

    folder = tmp_path / "out"
    if is_there:
        save_bilm(make_bilm(seed=1), folder, softmax)
        (folder / "notes.txt").write_text("mine")
    before = {path.name: path.read_bytes() for path in folder.iterdir()} if is_there else None
    written = []

    def fail_at_the_end(group, name, **content):
        written.append(name)
        return create(group, name, **content) if name != "softmax/b" else fail()

    create = h5py.Group.create_dataset
    monkeypatch.setattr(h5py.Group, "create_dataset", fail_at_the_end)
    with pytest.raises(KeyboardInterrupt):
        save_bilm(make_bilm(seed=2), folder, softmax, force=True)
    assert any("RNN_1" in name for name in written)
    if is_there:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    else:
        assert names(tmp_path) == []


def test_files_in_the_way_are_replaced_only_by_force(make_bilm, softmax, tmp_path):
    folder = tmp_path / "out"
    save_bilm(make_bilm(seed=1), folder, softmax)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match=r"already holds options.json, weights.hdf5, sof"):
        save_bilm(make_bilm(seed=2), folder)
    for name in ("weights.safetensors", "softmax.safetensors"):
        (folder / name).touch()
    # Without a softmax of its own, it must not stand beside that of another.
    save_bilm(make_bilm(seed=2), folder, force=True)
    assert names(folder) == ["notes.txt", *BILM]
    read = load_bilm(folder / "options.json", folder / "weights.hdf5")
    assert_same(read, make_bilm(seed=2))


def test_a_folder_is_created_or_used_and_others_are_left_alone(make_bilm, tmp_path):
    (tmp_path / "empty").mkdir()
    # The unfinished work of `elmo embed TEXT new`.
    (tmp_path / "new.unfinished").mkdir()
    (tmp_path / "new.unfinished" / "1.part").write_text("vectors")
    for name in ("empty", "new", "deep/er"):
        save_bilm(make_bilm(), tmp_path / name)
        assert names(tmp_path / name) == BILM
        assert (tmp_path / name).stat().st_mode == tmp_path.joinpath("empty").stat().st_mode
    assert names(tmp_path) == ["deep", "empty", "new", "new.unfinished"]
    assert names(tmp_path / "new.unfinished") == ["1.part"]


def test_a_kill_never_leaves_files_of_two_bilms(make_bilm, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    save_bilm(make_bilm(seed=1), folder)
    replace = os.replace

    def killed(source, target):
        if Path(target).parent == folder:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save_bilm(make_bilm(seed=2), folder, force=True)
    assert names(folder) == []


def test_what_cannot_be_written_is_refused_before_anything_is(
    make_bilm, make_options, tmp_path, softmax
):
    (tmp_path / "file").write_text("")
    source = {name: value for name, value in make_options().items() if name != "char_cnn"}
    tokens = BilmOptions.from_dict(source).with_words([*WORDS[:-1], "another"])
    for bilm, name, expected in [
        (make_bilm(), "file", "file is a file; expected a folder"),
        (make_bilm(projection_dim=9), "out", r"a weight of shape \(7, 9\), .*found \(7, 6\)"),
        (Bilm(tokens), "out", "expected the same words in the same order"),
    ]:
        with pytest.raises(ConfigurationError, match=expected):
            save_bilm(bilm, tmp_path / name, softmax)
    assert names(tmp_path) == ["file"]


def assert_same(first, second):
    assert first.options == second.options
    for (name, value), (other, expected) in zip(
        first.named_parameters(), second.named_parameters()
    ):
        assert name == other and torch.equal(value, expected), name


def test_a_folder_is_written_and_read_bit_for_bit(bilm, sentences, tmp_path):
    bilm.save_pretrained(tmp_path / "folder")
    names = {path.name for path in (tmp_path / "folder").iterdir()}
    assert names == {"config.json", "model.safetensors"}
    again = Bilm.from_pretrained(tmp_path / "folder")
    assert_same(again, bilm)
    assert not again.training
    for found, expected in zip(embed_sentences(again, sentences), embed_sentences(bilm, sentences)):
        assert torch.equal(found, expected)


def test_a_folder_of_options_and_hdf5_is_read(shared_bilm, options_file, tmp_path, monkeypatch):
    shutil.copy(options_file, tmp_path / "options.json")
    save_weights(shared_bilm, tmp_path / "weights.hdf5")
    # Another program has one of these.
    (tmp_path / "config.json").write_text('{"model": {"type": "elmo-srl"}}')
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    read = Bilm.from_pretrained(f"~/{tmp_path.name}", warm_up=True)
    assert_same(read, shared_bilm)
    assert read.warm_up


def test_token_embeddings_and_forward_only_models_are_written_and_read(make_options, tmp_path):
    folder = save_token_bilm(tmp_path / "tokens", make_options(bidirectional=False))
    bilm = Bilm.from_pretrained(folder)
    bilm.save_pretrained(tmp_path / "again")
    assert "vocabulary" not in json.loads((tmp_path / "again" / "config.json").read_text())
    assert_same(Bilm.from_pretrained(tmp_path / "again"), bilm)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="expected config.json and model.safetensors, or"):
        Bilm.from_pretrained(tmp_path)


def test_a_hub_name_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        ImportError, match="someone/bilm is no folder .*pip install huggingface_hub"
    ):
        Bilm.from_pretrained("someone/bilm")


def test_a_repository_is_downloaded(monkeypatch, shared_bilm, tmp_path):
    shared_bilm.save_pretrained(tmp_path / "hub")

    def snapshot_download(name, revision, token, allow_patterns):
        if (name, revision, token) != ("someone/bilm", "v1", "secret"):
            raise ConnectionError("404 not found\ndetails")
        assert "model.safetensors" in allow_patterns and "vocabulary.txt" in allow_patterns
        return str(tmp_path / "hub")

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    read = Bilm.from_pretrained("someone/bilm", revision="v1", token="secret")
    assert_same(read, shared_bilm)
    with pytest.raises(ConfigurationError, match=r"neither a folder .* \(404 not found\)"):
        Bilm.from_pretrained("someone/other")
