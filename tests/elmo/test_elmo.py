"""The token embedder: against AllenNLP's, through its text fields, frozen and learning."""

import os
import random

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.modules import TextFieldEmbedder, TokenEmbedder
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.elmo import batch_to_ids

from elmo_plugin import Elmo
from tests.bilm.oracle import random_batch, relative_error

SCORES, GAMMA = [0.5, -1.0, 2.0], 1.7


@pytest.fixture
def files(options_file, weight_file):
    return str(options_file), str(weight_file)


def make(**settings):
    """An ELMo of the fixture biLM whose mixes have learned."""
    elmo = Elmo(**{"dropout": 0.0, **settings})
    with torch.no_grad():
        for number, mix in enumerate(elmo.mixes):
            if settings.get("fixed_weights") is None:
                mix.layer_scores.copy_(torch.tensor(SCORES[: mix.num_layers]) * (number + 1))
                mix.gamma.fill_(GAMMA)
    return elmo


@pytest.mark.parametrize("layer_norm", [False, "batch"])
@pytest.mark.parametrize("stateful", [False, True])
def test_learned_mixes_are_allennlps(files, layer_norm, stateful):
    ours = make(num_mixes=2, layer_norm=layer_norm, stateful=stateful)
    theirs = AllenNlpElmo(*files, 2, do_layer_norm=bool(layer_norm), dropout=0.0)
    with torch.no_grad():
        for number, mix in enumerate(theirs._scalar_mixes):
            for parameter, score in zip(mix.scalar_parameters, SCORES):
                parameter.fill_(score * (number + 1))
            mix.gamma.fill_(GAMMA)
    generator = random.Random(2)
    for batch_size in (4, 2, 6, 6, 1):
        if not stateful:
            theirs._elmo_lstm._elmo_lstm.reset_states()
        ids = batch_to_ids(random_batch(generator, batch_size, 9))
        expected = theirs(ids)
        for found, other in zip(ours.representations(ids), expected["elmo_representations"]):
            assert found.shape == (*ids.shape[:2], 32)
            assert relative_error(found[expected["mask"]], other[expected["mask"]]) < 1e-5
            assert not found[~expected["mask"]].any()


def test_marks_are_left_out_and_padding_is_zero(shared_bilm, sentences):
    ids = shared_bilm.characters.batch_ids(sentences)
    layers = shared_bilm(ids).layers
    found = make(layers=[2], fixed_weights=[1.0])(ids)
    for row, words in enumerate(sentences):
        torch.testing.assert_close(found[row, : len(words)], layers[2, row, 1 : len(words) + 1])
        assert not found[row, len(words) :].any()
    # As for the biLM, padding is any id that is not of a character.
    padded = torch.where(ids == 0, -1, ids)
    assert torch.equal(make(layers=[2], fixed_weights=[1.0])(padded), found)


@pytest.mark.parametrize(
    "layers, chosen",
    [("all", [0, 1, 2]), ("last", [2]), ([0], [0]), ([2, 0], [2, 0]), ([2, 1, 0], [2, 1, 0])],
)
def test_only_the_chosen_layers_are_mixed(shared_bilm, layers, chosen):
    ids = shared_bilm.characters.batch_ids([["They", "play", "chess"]])
    elmo = make(layers=layers)
    weights = torch.tensor(SCORES[: len(chosen)]).softmax(dim=0)
    expected = sum(
        GAMMA * weight * shared_bilm(ids).layers[layer, :, 1:-1]
        for weight, layer in zip(weights, chosen)
    )
    torch.testing.assert_close(elmo(ids), expected)


@pytest.mark.parametrize("shape", [(2, 3, 0), (4, 0)])
def test_text_without_a_word_gives_no_vector(shape):
    assert make()(torch.zeros(*shape, 50, dtype=torch.long)).shape == (*shape, 32)


def test_ids_of_two_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"found \(3, 50\)"):
        make()(torch.ones(3, 50, dtype=torch.long))


def test_lists_of_sentences_have_one_dimension_more(shared_bilm):
    ids = shared_bilm.characters.batch_ids([["a", "b"], ["c"], [], ["d", "e"], ["f"], []])
    elmo = make()
    assert torch.equal(elmo(ids.view(2, 3, 2, 50)), elmo(ids).view(2, 3, 2, 32))
    assert torch.equal(elmo(ids.view(1, 2, 3, 2, 50)), elmo(ids).view(1, 2, 3, 2, 32))


def test_dropout_acts_in_training_only(shared_bilm, sentences):
    elmo = make(dropout=0.5)
    ids = shared_bilm.characters.batch_ids(sentences[:1])
    assert ((elmo.train()(ids) == 0).float().mean() - 0.5).abs() < 0.15
    assert torch.equal(elmo.eval()(ids), make()(ids))


def test_a_frozen_bilm_learns_nothing_and_its_mixes_learn(shared_bilm, sentences):
    elmo = make(num_mixes=2)
    ids = shared_bilm.characters.batch_ids(sentences)
    sum(mixed.square().sum() for mixed in elmo.representations(ids)).backward()
    learning = [name for name, parameter in elmo.named_parameters() if parameter.requires_grad]
    assert len(learning) == 4 and all(name.startswith("mixes.") for name in learning)
    for name, parameter in elmo.named_parameters():
        assert (parameter.grad is not None and parameter.grad.any()) == (name in learning)


def test_a_trainable_bilm_gets_the_gradients_of_finite_differences(shared_bilm):
    elmo = make(trainable=True).double()
    ids = shared_bilm.characters.batch_ids([["a", "🙂"], ["b"]])
    names, parameters = zip(*elmo.named_parameters())
    assert sum(name.startswith("bilm.") for name in names) == len(names) - 2

    def mixed(*values):
        return torch.func.functional_call(elmo, dict(zip(names, values)), (ids,))

    assert torch.autograd.gradcheck(mixed, parameters, fast_mode=True)


@pytest.mark.parametrize("given", [True, False])
def test_it_is_a_token_embedder_of_a_text_field(files, shared_bilm, sentences, given, monkeypatch):
    settings = {"type": "elmo-token-embedder", "layers": "all", "layer_norm": "batch", "dropout": 0}
    if given:
        settings.update(options_file=files[0], weight_file=files[1])
        for name in ("ELMO_OPTIONS", "ELMO_WEIGHTS"):
            monkeypatch.setenv(name, "missing")
    embedder = TextFieldEmbedder.from_params(Params({"token_embedders": {"elmo": settings}}))
    ids = shared_bilm.characters.batch_ids(sentences)
    assert embedder.get_output_dim() == 32
    expected = Elmo(*files, layer_norm="batch", dropout=0.0)(ids)
    assert torch.equal(embedder({"elmo": {"elmo_tokens": ids}}), expected)
    lists = embedder({"elmo": {"elmo_tokens": ids.unsqueeze(1)}}, num_wrapping_dims=1)
    assert torch.equal(lists, expected.unsqueeze(1))


@pytest.mark.parametrize(
    "settings, expected",
    [
        (dict(weights_file="x"), "weights_file"),
        (dict(do_layer_norm=True), "do_layer_norm"),
        (dict(layers="first"), r'"all", "last", or different numbers .* to 2, found \'first\''),
        (dict(layers=[1, 1, 2]), r"different numbers .* to 2, found \[1, 1, 2\]"),
        (dict(layers=[0, 3]), r"to 2, found \[0, 3\]"),
        (dict(layer_norm="tokens"), "`layer_norm`"),
        (dict(fixed_weights=[1.0]), "`fixed_weights` of 3 layers, .* found 1"),
        (dict(dtype="float16"), "found 'float16'"),
        (dict(dtype="bfloat16", trainable=True), "needs `dtype` float32"),
        (dict(cache=True, trainable=True), "`trainable` True and `stateful` False"),
        (dict(cache="folder", stateful=True), "`trainable` False and `stateful` True"),
        (dict(options_file="none.json", weight_file="x"), "none.json does not exist"),
        (
            dict(options_file=os.environ["ELMO_OPTIONS"], weight_file="none.hdf5"),
            "none.hdf5 does not exist",
        ),
        (dict(options_file=os.environ["ELMO_OPTIONS"]), "found options .*options.json alone"),
        (dict(bilm="x", options_file="y"), "found `bilm` x and y. Leave one of them out"),
        (dict(bilm=os.path.dirname(__file__)), "holds no biLM: .*model.safetensors, or .*found "),
    ],
)
def test_an_impossible_setting_is_refused(settings, expected):
    with pytest.raises(ConfigurationError, match=expected):
        TokenEmbedder.from_params(Params({"type": "elmo-token-embedder", **settings}))


def test_the_cache_is_where_it_is_asked_for(tmp_path, monkeypatch, shared_bilm):
    ids = shared_bilm.characters.batch_ids([["They", "play"]])
    monkeypatch.setenv("ELMO_CACHE", str(tmp_path / "default"))
    for cache, folder in ((False, None), (str(tmp_path / "own"), "own"), (True, "default")):
        before = set(tmp_path.iterdir())
        elmo = TokenEmbedder.from_params(Params({"type": "elmo-token-embedder", "cache": cache}))
        elmo(ids)
        assert {path.name for path in set(tmp_path.iterdir()) - before} == ({folder} - {None})
    monkeypatch.setenv("ELMO_CACHE", "")
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    make(cache=True)(ids)
    assert set(tmp_path.rglob("*")) == before


def test_a_bilm_unfrozen_later_learns(shared_bilm):
    elmo = make()
    elmo.bilm.requires_grad_(True)
    elmo(shared_bilm.characters.batch_ids([["They", "play"]])).sum().backward()
    assert all(parameter.grad is not None for parameter in elmo.bilm.parameters())
