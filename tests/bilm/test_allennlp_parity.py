"""AllenNLP's own ELMo with the same weights: layers, carried state and gradients."""

import json
import random

import pytest
import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids

from elmo_plugin.bilm import load_bilm, save_weights
from tests.bilm.oracle import assert_layers_equal, random_batch, relative_error


@pytest.fixture(params=["fixture", 1, 4], ids=lambda kind: f"{kind}")
def files(request, tmp_path, options_file, weight_file, make_bilm, make_options):
    """Options and weights: the fixture's, or random ones of so many layers, written by us."""
    if request.param == "fixture":
        return options_file, weight_file
    options = tmp_path / "options.json"
    options.write_text(json.dumps(make_options(n_layers=request.param)))
    save_weights(make_bilm(seed=7, n_layers=request.param), tmp_path / "weights.hdf5")
    return options, tmp_path / "weights.hdf5"


def batches(seed: int):
    generator = random.Random(seed)
    for _ in range(10):
        yield random_batch(generator, generator.choice([1, 2, 3, 5, 8]), generator.randint(1, 12))


@pytest.mark.parametrize("gradients", [True, False])
def test_carried_state_agrees_over_ten_batches_of_changing_size(files, gradients):
    ours, theirs = load_bilm(*files, stateful=True), _ElmoBiLm(*files)
    with torch.set_grad_enabled(gradients):
        for batch in batches(11):
            ids = batch_to_ids(batch)
            found, expected = ours(ids), theirs(ids)
            assert torch.equal(found.mask, expected["mask"])
            assert_layers_equal(found.layers, torch.stack(expected["activations"]))


def test_without_carried_state_each_batch_is_allennlps_first(files):
    ours, theirs = load_bilm(*files), _ElmoBiLm(*files)
    for batch in batches(12):
        theirs._elmo_lstm.reset_states()
        ids = batch_to_ids(batch)
        assert_layers_equal(ours(ids).layers, torch.stack(theirs(ids)["activations"]))


def test_gradients_of_every_weight_agree(files):
    ours, theirs = load_bilm(*files), AllenNlpElmo(*files, 1, requires_grad=True, dropout=0.0)
    ids = batch_to_ids(random_batch(random.Random(14), 5, 9))
    layers = ours(ids).layers
    activations = torch.stack(theirs._elmo_lstm(ids)["activations"])
    # Another factor per number, so that no error cancels.
    factors = torch.randn(layers.shape, generator=torch.Generator().manual_seed(1))
    (layers * factors).sum().backward()
    (activations * factors).sum().backward()
    compared = list(_gradients(ours, theirs._elmo_lstm))
    assert len(compared) == len(list(ours.parameters())) - 2 * ours.options.char_cnn.n_highway
    for name, found, expected in compared:
        assert expected.abs().max() > 0, name
        assert relative_error(found, expected) < 1e-4, name


def _gradients(ours, theirs):
    """Our gradients in the layout of AllenNLP's, highway matrices joined as there."""
    encoder, their_encoder = ours.character_encoder, theirs._token_embedder
    yield (
        "char_embed",
        encoder.embedding.weight.grad[1:],
        their_encoder._char_embedding_weights.grad[1:],
    )
    dim = ours.options.char_cnn.embedding_dim
    for number, (conv, other) in enumerate(zip(encoder.convolutions, their_encoder._convolutions)):
        weight = conv.weight.grad.view(len(conv.weight), -1, dim).transpose(1, 2)
        yield f"W_cnn_{number}", weight, other.weight.grad
        yield f"b_cnn_{number}", conv.bias.grad, other.bias.grad
    for number, (highway, other) in enumerate(
        zip(encoder.highways, their_encoder._highways._layers)
    ):
        for kind in ("weight", "bias"):
            transform, gate = getattr(highway.transform, kind), getattr(highway.gate, kind)
            joined = torch.cat([transform.grad, -gate.grad])
            yield f"highway {number} {kind}", joined, getattr(other, kind).grad
    for kind in ("weight", "bias"):
        found = getattr(encoder.projection, kind).grad
        yield f"projection {kind}", found, getattr(their_encoder._projection, kind).grad
    for side in ("forward", "backward"):
        stack = getattr(ours.lstm, f"{side}_layers")
        for number, layer in enumerate(stack):
            other = getattr(theirs._elmo_lstm, f"{side}_layer_{number}")
            for name, found, expected in (
                ("input", layer.input.weight, other.input_linearity.weight),
                ("recurrent", layer.recurrent.weight, other.state_linearity.weight),
                ("bias", layer.bias, other.state_linearity.bias),
            ):
                yield f"{side} {number} {name}", found.grad, expected.grad
            yield (
                f"{side} {number} projection",
                layer.projection.weight.grad,
                other.state_projection.weight.grad,
            )
