"""`~` is the home folder wherever something is written."""

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model_from_file
from allennlp.common import file_utils

from elmo_plugin.analysis.features import SpannedSentence, compute_features
from elmo_plugin.analysis.neighbours import build_index
from elmo_plugin.analysis.representations import BilmLayers
from elmo_plugin.bilm import save_weights
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.pack import pack
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, save_softmax
from elmo_plugin.bilm.vocabulary_file import write_vocabulary
from elmo_plugin.elmo.cache.layer_cache import LayerCache
from elmo_plugin.elmo.store.dump import DumpOptions, dump_embeddings
from elmo_plugin.elmo.store.rows import ResumableText
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.util.weights import save_atomically
from tests.commands import running
from tests.trained import FIXTURES

RESULTS = FIXTURES.parent / "experiments/results/cove"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home folder; the working folder holds a text."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "text").write_text("a cat\nof the cat\n")
    # Compiled once, not for this home.
    compiled_kernels()
    monkeypatch.setenv("HOME", str(home))
    # Local files do not need AllenNLP's cache folder, which is none here.
    monkeypatch.setattr(file_utils, "CACHE_DIRECTORY", "/dev/null/cache")
    monkeypatch.chdir(elsewhere)
    yield home
    assert os.listdir(elsewhere) == ["text"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["elmo", "text", "~/out.hdf5", "--all"],
        ["elmo-vocabulary", "text", "~/out"],
        ["elmo-experiments", "~/out"],
        ["elmo-neighbours", "build", "text", "~/out"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands(home, arguments):
    running.run(*arguments)
    assert list(home.glob("out*"))


def test_tables_of_a_study(home):
    shutil.copytree(RESULTS, home / "out")
    running.run("elmo-study", "cove.jsonnet", "--serialization-dir=~/out", "--show")
    assert (home / "out/tables.md").exists()


def test_pictures_of_a_report(home, tmp_path):
    # The page is written beside the results.
    results = shutil.copytree(RESULTS, tmp_path / "results")
    running.run("elmo-report", results, "--pictures", "~/out")
    assert list(home.glob("out/*.svg"))


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_commands_of_allennlp(home, tagger, command):
    corpus = FIXTURES / "corpora/ner/dev.conll"
    arguments = ["--use-dataset-reader"] if command == "predict" else []
    running.run(command, tagger, corpus, "--output-file", "~/out", *arguments)
    assert (home / "out").read_text()


def test_functions(home, bilm, tagger):
    softmax = SoftmaxWeights(torch.zeros(3, 512), torch.zeros(3), ["<S>", "</S>", "<UNK>"], None)
    sentences = [SpannedSentence(["a"], [(0, 1)])]
    write = {
        "weights.hdf5": partial(save_weights, bilm),
        "weights.safetensors": partial(save_weights, bilm),
        "state.th": partial(save_atomically, {}),
        "pretrained": bilm.save_pretrained,
        "exported": partial(save_bilm, bilm),
        "softmax": lambda path: save_softmax(softmax, path),
        "vocabulary": partial(write_vocabulary, [("<S>", None)]),
        "vectors.hdf5": lambda path: dump_embeddings(bilm, "text", path, DumpOptions("all")),
        "lines.unfinished": lambda path: ResumableText(
            Path(path.removesuffix(".unfinished")), {}, False
        ),
        "index": lambda path: build_index(bilm, ["text"], path),
        "features": lambda path: compute_features(BilmLayers(bilm), sentences, path),
        "packed": partial(pack, tagger),
        "cache": lambda path: LayerCache.open(Path(path), bilm),
    }
    for name, function in write.items():
        function(f"~/{name}")
        assert (home / name).exists(), name


def test_only_urls_and_archives_need_the_cache_of_allennlp(home, tagger):
    assert file_utils.cached_path("file://text") == file_utils.cached_path("text") == "text"
    assert file_utils.cached_path(home, extract_archive=True) == str(home)
    with pytest.raises(FileNotFoundError, match="No such file: missing"):
        file_utils.cached_path("missing")
    for name in ("hf://owner/name", tagger):
        with pytest.raises(NotADirectoryError, match="/dev/null/cache"):
            file_utils.cached_path(name, extract_archive=True)


def test_the_folder_of_a_training_run(home):
    train_model_from_file(FIXTURES / "experiments/ner.jsonnet", "~/run", dry_run=True)
    assert (home / "run/vocabulary").is_dir()
