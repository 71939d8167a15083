"""Every experiment renders, names only what is registered, and can be built."""

import re
from pathlib import Path

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model

import elmo_plugin  # noqa: F401

PROJECT = Path(__file__).parents[1]
EXPERIMENTS = sorted(
    path
    for folder in ("experiments", "experiments/ablations", "fixtures/experiments")
    for path in (PROJECT / folder).glob("*.jsonnet")
)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_the_experiment_builds_its_reader_and_model(path):
    params = Params.from_file(path)
    reader = DatasetReader.from_params(params["dataset_reader"])
    instances = list(reader.read(params["train_data_path"]))
    vocab = Vocabulary.from_instances(instances)
    model = Model.from_params(vocab=vocab, params=params["model"])
    assert any(parameter.requires_grad for parameter in model.parameters())


def test_every_experiment_says_what_it_is_and_what_the_paper_reached():
    table = (PROJECT / "experiments/README.md").read_text(encoding="utf-8")
    for path in (PROJECT / "experiments").rglob("*.jsonnet"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("//"), path
        if path.parent.name == "experiments":
            assert "// Paper: " in text and f"`{path.name}`" in table, path


def test_ablations_are_three_lines():
    for path in (PROJECT / "experiments/ablations").glob("*.jsonnet"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 3, path


def test_paths_stand_in_one_file_only():
    for path in (PROJECT / "experiments").rglob("*.*sonnet"):
        if path.name != "paths.libsonnet":
            assert "std.extVar" not in path.read_text(encoding="utf-8"), path


@pytest.mark.parametrize(
    "name, setting, expected",
    [
        ("srl_elmo_input", ("placement", "at"), "input"),
        ("srl_elmo_output", ("placement", "at"), "output"),
        ("srl_elmo_both", ("placement", "at"), "both"),
        ("srl_elmo_last_layer", ("placement", "elmo", "layers"), "last"),
    ],
)
def test_an_ablation_changes_what_its_name_says(name, setting, expected):
    base = Params.from_file(PROJECT / "experiments/srl_elmo.jsonnet").as_dict(quiet=True)
    changed = Params.from_file(PROJECT / f"experiments/ablations/{name}.jsonnet").as_dict(
        quiet=True
    )
    inner = changed["model"]
    for key in setting[:-1]:
        inner = inner[key]
    assert inner.pop(setting[-1]) == expected
    inner = base["model"]
    for key in setting[:-1]:
        inner = inner[key]
    inner.pop(setting[-1])
    assert changed == base


@pytest.mark.parametrize("strength", ["1", "0.001", "0"])
def test_lambda_is_one_value(strength):
    params = Params.from_file(PROJECT / f"experiments/ablations/srl_elmo_lambda_{strength}.jsonnet")
    ((pattern, penalty),) = params["model"]["regularizer"]["regexes"]
    assert re.search(pattern, "placement.elmo.mixes.0.layer_scores")
    assert penalty.as_dict(quiet=True) == {"type": "l2", "alpha": float(strength)}


def test_word_vectors_are_learned_when_there_is_no_file(monkeypatch):
    monkeypatch.setenv("ELMO_GLOVE", "")
    params = Params.from_file(PROJECT / "experiments/srl.jsonnet")
    embedder = params["model"]["text_field_embedder"]["token_embedders"]["words"]
    assert "pretrained_file" not in embedder


def test_a_misspelt_key_is_refused_by_name(tmp_path):
    path = tmp_path / "x.jsonnet"
    path.write_text(
        f"(import '{PROJECT}/experiments/srl_elmo.jsonnet') + {{ model+: {{ predicat_dim: 3 }} }}"
    )
    params = Params.from_file(path)
    reader = DatasetReader.from_params(params["dataset_reader"])
    vocab = Vocabulary.from_instances(reader.read(params["train_data_path"]))
    with pytest.raises(ConfigurationError, match="predicat_dim"):
        Model.from_params(vocab=vocab, params=params["model"])


@pytest.mark.parametrize("settings", ["hidden_sise: 10", "elmo+: { lamda: 5 }", "words: []"])
def test_a_misspelt_or_impossible_setting_is_refused(tmp_path, settings):
    path = tmp_path / "x.jsonnet"
    path.write_text(
        f"(import '{PROJECT}/experiments/srl_elmo.jsonnet') {{ settings+: {{ {settings} }} }}"
    )
    with pytest.raises(RuntimeError, match="no such settings: (hidden_sise|lamda)|words is empty"):
        Params.from_file(path)
