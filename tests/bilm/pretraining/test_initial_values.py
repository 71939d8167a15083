"""What a language model is built from: options, drawn values, trained weights."""

import copy
import json

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.models import Model

from elmo_plugin.bilm import Bilm, BilmOptions, load_weights, save_weights
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary

CONSTANT = {
    "regexes": [[".*", {"type": "constant", "val": 0.5}]],
    "prevent_regexes": ["highways.*gate.bias"],
}


@pytest.fixture
def build(tmp_path):
    (tmp_path / "text.txt").write_text("a b c a b a\n")
    vocab = SoftmaxVocabulary.from_text(text=str(tmp_path / "text.txt"))

    def build(**settings):
        # Building empties what it is given.
        settings = copy.deepcopy({"type": "elmo-bilm", **settings})
        return Model.from_params(vocab=vocab, params=Params(settings))

    return build


def test_options_are_written_out_or_in_a_file(build, make_options, tmp_path):
    options = make_options(n_layers=3)
    (tmp_path / "options.json").write_text(json.dumps(options))
    path = str(tmp_path / "options.json")
    assert build(options_file=path).bilm.options == build(options=options).bilm.options
    with pytest.raises(ConfigurationError, match="found `options` and `options_file`"):
        build(options=options, options_file=path)


def test_without_options_they_are_those_of_the_environment(build, monkeypatch, make_options):
    from_default = build().bilm.options
    monkeypatch.setenv("ELMO_OPTIONS", "nowhere.json")
    with pytest.raises(ConfigurationError, match="nowhere.json does not exist"):
        build()
    assert from_default != build(options=make_options()).bilm.options


def test_an_initializer_reaches_all_but_padding_and_what_it_leaves_out(build, make_options):
    model = build(options=make_options(), initializer=CONSTANT)
    for name, parameter in model.named_parameters():
        if name == "bilm.character_encoder.embedding.weight":
            assert not parameter[0].any()
            parameter = parameter[1:]
        expected = -2.0 if name.endswith("gate.bias") else 0.5
        assert torch.equal(parameter, torch.full_like(parameter, expected)), name


def test_trained_weights_come_after_an_initializer(build, make_options, tmp_path):
    options = BilmOptions.from_dict(make_options())
    save_weights(Bilm(options), tmp_path / "weights.hdf5")
    expected = Bilm(options)
    load_weights(expected, tmp_path / "weights.hdf5")
    model = build(
        options=make_options(),
        initializer=CONSTANT,
        initial_weights=str(tmp_path / "weights.hdf5"),
    )
    for ours, theirs in zip(model.bilm.parameters(), expected.parameters()):
        assert torch.equal(ours, theirs)
    assert torch.equal(model.softmax.bias, torch.full_like(model.softmax.bias, 0.5))
