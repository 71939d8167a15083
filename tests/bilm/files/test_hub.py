"""Folders of biLMs, and the Hub by a stand-in for huggingface_hub."""

import json
import shutil
import sys
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open

from elmo_plugin import Bilm, embed_sentences, save_weights
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.token_files import save_token_bilm


def assert_same(first, second):
    assert first.options == second.options
    for (name, value), (other, expected) in zip(
        first.named_parameters(), second.named_parameters()
    ):
        assert name == other and torch.equal(value, expected), name


def test_a_folder_is_written_and_read_bit_for_bit(bilm, sentences, tmp_path):
    bilm.save_pretrained(tmp_path / "folder")
    names = {path.name for path in (tmp_path / "folder").iterdir()}
    assert names == {"config.json", "model.safetensors", "README.md"}
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


def test_tensors_have_the_names_of_published_files(shared_bilm, tmp_path):
    shared_bilm.save_pretrained(tmp_path, dtype="float16")
    with safe_open(tmp_path / "model.safetensors", framework="pt") as opened:
        assert "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/W_0" in opened.keys()
        assert opened.get_tensor("char_embed").dtype == torch.float16


def test_token_embeddings_and_forward_only_models_are_written_and_read(make_options, tmp_path):
    folder = save_token_bilm(tmp_path / "tokens", make_options(bidirectional=False))
    bilm = Bilm.from_pretrained(folder)
    bilm.save_pretrained(tmp_path / "again")
    assert "vocabulary" not in json.loads((tmp_path / "again" / "config.json").read_text())
    assert_same(Bilm.from_pretrained(tmp_path / "again"), bilm)


def test_the_model_card_holds_the_numbers_that_were_measured(shared_bilm, tmp_path):
    card = tmp_path / "README.md"
    shared_bilm.save_pretrained(tmp_path, {"perplexity": 39.7, "F1 of SRL": 0.8123})
    assert "| perplexity | 39.7 |\n| F1 of SRL | 0.8123 |" in card.read_text()
    num_parameters = sum(parameter.numel() for parameter in shared_bilm.parameters())
    assert f"{num_parameters:,} parameters" in card.read_text()
    card.write_text("written by hand")
    shared_bilm.save_pretrained(tmp_path)
    assert card.read_text() == "written by hand"
    shared_bilm.save_pretrained(tmp_path, {"perplexity": 1.0})
    assert "| perplexity | 1 |" in card.read_text()


def test_what_is_missing_is_named(shared_bilm, tmp_path):
    with pytest.raises(ConfigurationError, match="expected config.json and model.safetensors, or"):
        Bilm.from_pretrained(tmp_path)
    shared_bilm.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError, match="holds config.json, but not model.safetensors"):
        Bilm.from_pretrained(tmp_path)
    with pytest.raises(ConfigurationError, match="Folder .*elsewhere does not exist"):
        Bilm.from_pretrained(tmp_path / "elsewhere")


def test_a_hub_name_without_its_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        ImportError, match="someone/bilm is no folder .*pip install huggingface_hub"
    ):
        Bilm.from_pretrained("someone/bilm")


def test_a_repository_is_downloaded_and_uploaded(monkeypatch, shared_bilm, tmp_path):
    repository = tmp_path / "hub"

    def snapshot_download(name, revision, token, allow_patterns):
        if (name, revision) != ("someone/bilm", "v1"):
            raise ConnectionError("404 not found\ndetails")
        assert "model.safetensors" in allow_patterns and "vocabulary.txt" in allow_patterns
        return str(repository)

    class HfApi:
        def __init__(self, token):
            self.token = token

        def create_repo(self, repo_id, private, exist_ok):
            assert self.token == "secret" and private and exist_ok
            return SimpleNamespace(repo_id=f"someone/{repo_id}")

        def file_exists(self, repo_id, filename):
            return (repository / filename).exists()

        def upload_folder(self, repo_id, folder_path, commit_message, ignore_patterns):
            assert repo_id == "someone/bilm" and commit_message
            ignore = shutil.ignore_patterns(*ignore_patterns or [])
            shutil.copytree(folder_path, repository, ignore=ignore, dirs_exist_ok=True)
            return "https://hub/commit"

    hub = SimpleNamespace(HfApi=HfApi, snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    url = shared_bilm.push_to_hub("bilm", {"perplexity": 39.7}, private=True, token="secret")
    assert url == "https://hub/commit"
    shared_bilm.push_to_hub("bilm", private=True, token="secret")
    assert "39.7" in (repository / "README.md").read_text()
    assert_same(Bilm.from_pretrained("someone/bilm", revision="v1"), shared_bilm)
    with pytest.raises(ConfigurationError, match=r"neither a folder .* \(404 not found\)"):
        Bilm.from_pretrained("someone/other")
