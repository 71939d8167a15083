"""Language models of other shapes: forward only, and without one or the other projection."""

import json

import pytest
import torch

from elmo_plugin.bilm import load_bilm, load_weights, save_weights
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import assert_layers_equal, relative_error
from tests.bilm.test_bilm import VARIANTS, named, slow_twin

# The token layer of Kim et al. (2016): wider than what the LSTMs give, or narrower.
UNEQUAL = [
    dict(projection=False),
    dict(projection=False, projection_dim=None, dim=31, n_layers=3),
    dict(projection=False, projection_dim=None, bidirectional=False),
]


@pytest.mark.parametrize("changes", UNEQUAL, ids=named)
@pytest.mark.parametrize("gradients", [True, False])
def test_a_token_layer_of_another_width_feeds_the_recurrent_layers(
    make_bilm, tmp_path, changes, gradients
):
    bilm = make_bilm(**changes)
    slow = slow_twin(bilm, tmp_path)
    words = ["They", "play", "naïve", "chess"]
    ids = bilm.characters.batch_ids([["<S>", *words, "</S>"]])
    with torch.set_grad_enabled(gradients):
        tokens = bilm.character_encoder(ids[0]).unsqueeze(0)
        layers, _ = bilm.lstm(tokens, Packing.from_lengths(torch.tensor([6]), 6))
    expected = [torch.from_numpy(layer) for layer in slow.run_apart(words)[0]]
    assert tokens.size(-1) == bilm.options.token_dim == 23
    # The slow loop has it once per direction.
    expected[0] = expected[0][:, :23]
    for found, layer in zip([tokens[0], *layers[:, 0]], expected):
        assert relative_error(found, layer) < 1e-5


@pytest.mark.parametrize("changes", [VARIANTS[0], VARIANTS[2]], ids=named)
@pytest.mark.parametrize("start", ["stateful", "warm_up"])
def test_variants_carry_and_warm_up_states_too(make_bilm, tmp_path, changes, start):
    bilm = make_bilm(**{start: True}, **changes)
    slow = slow_twin(bilm, tmp_path)
    states = slow.run([])[1] if start == "warm_up" else None
    for words in (["a", "b"], ["c"]):
        expected, after = slow.run(words, states)
        assert_layers_equal(bilm(bilm.characters.batch_ids([words])).layers[:, 0], expected)
        states = after if start == "stateful" else states


@pytest.mark.parametrize("changes", VARIANTS + UNEQUAL, ids=named)
@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_every_variant_is_written_and_read_bit_for_bit(make_bilm, tmp_path, changes, ending):
    bilm, read = make_bilm(seed=1, **changes), make_bilm(seed=2, **changes)
    save_weights(bilm, tmp_path / f"weights.{ending}")
    load_weights(read, tmp_path / f"weights.{ending}")
    assert len(list(bilm.parameters())) == len(list(read.parameters()))
    for name, parameter in bilm.named_parameters():
        assert torch.equal(read.get_parameter(name), parameter), name


@pytest.mark.parametrize(
    "changes, expected",
    [
        (dict(bidirectional=False), "`bidirectional` is false, but ELMo needs a model of both"),
        (dict(projection=False), r"as an LSTM layer's output \(6\), found 23. Without `char_cnn"),
    ],
)
def test_elmo_refuses_layers_that_it_cannot_mix(
    make_bilm, make_options, tmp_path, changes, expected
):
    (tmp_path / "options.json").write_text(json.dumps(make_options(**changes)))
    save_weights(make_bilm(**changes), tmp_path / "weights.hdf5")
    with pytest.raises(ConfigurationError, match=f"options.json: .*{expected}"):
        load_bilm(tmp_path / "options.json", tmp_path / "weights.hdf5")


def test_reading_sentences_needs_layers_of_one_width(make_bilm):
    bilm = make_bilm(projection=False)
    with pytest.raises(
        ConfigurationError, match=r"LSTM layer's output \(6\), found 23.* add up to 6"
    ):
        bilm(bilm.characters.batch_ids([["word"]]))
