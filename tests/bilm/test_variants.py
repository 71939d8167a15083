"""Language models of other shapes: forward only, and without one or the other projection."""

import json
import random

import h5py
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_plugin.bilm import BilmOptions, load_bilm, load_weights, save_weights
from elmo_plugin.modules.recurrent.packing import Packing
from tests.bilm.oracle import (
    SlowBilm,
    assert_layers_equal,
    random_batch,
    read_arrays,
    relative_error,
)

VARIANTS = [
    dict(bidirectional=False),
    dict(bidirectional=False, n_layers=1, activation="tanh"),
    dict(projection_dim=None),
    dict(projection_dim=None, proj_clip=0.01, use_skip_connections=False),
    dict(projection=False, projection_dim=23),
    dict(projection=False, projection_dim=None, dim=23, n_highway=0),
    dict(bidirectional=False, projection=False, projection_dim=None, dim=23, activation="tanh"),
]
# The token layer of Kim et al. (2016): wider than what the LSTMs give, or narrower.
UNEQUAL = [
    dict(projection=False),
    dict(projection=False, projection_dim=None, dim=31, n_layers=3),
    dict(projection=False, projection_dim=None, bidirectional=False),
]


def named(changes):
    return ",".join(f"{name}={value}" for name, value in changes.items())


def slow_twin(bilm, tmp_path):
    save_weights(bilm, tmp_path / "weights.hdf5")
    return SlowBilm(bilm.options.source, read_arrays(tmp_path / "weights.hdf5"))


@pytest.mark.parametrize("changes", VARIANTS, ids=named)
@pytest.mark.parametrize("gradients", [True, False])
def test_every_variant_agrees_with_the_slow_loop(make_bilm, tmp_path, changes, gradients):
    bilm = make_bilm(**changes)
    slow = slow_twin(bilm, tmp_path)
    batch = random_batch(random.Random(1), 4, 6)
    with torch.set_grad_enabled(gradients):
        output = bilm(bilm.characters.batch_ids(batch))
    assert output.layers.size(-1) == bilm.output_dim
    for row, words in enumerate(batch):
        assert_layers_equal(output.layers[:, row, : len(words) + 2], slow.layers(words))


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


def test_known_words_serve_a_variant_too(make_bilm):
    bilm = make_bilm(**VARIANTS[-1])
    ids = bilm.characters.batch_ids([["known", "unknown"]])
    with torch.no_grad():
        expected = bilm(ids).layers
        bilm.precompute(["known", "<S>", "</S>"])
        assert relative_error(bilm(ids).layers, expected) < 1e-6
        # Its character encoder is not needed for known words.
        bilm.character_encoder.forward = None
        bilm(bilm.characters.batch_ids([["known"]]))
        with pytest.raises(TypeError):
            bilm(ids)


@pytest.mark.parametrize("changes", VARIANTS + UNEQUAL, ids=named)
@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_every_variant_is_written_and_read_bit_for_bit(make_bilm, tmp_path, changes, ending):
    bilm, read = make_bilm(seed=1, **changes), make_bilm(seed=2, **changes)
    save_weights(bilm, tmp_path / f"weights.{ending}")
    load_weights(read, tmp_path / f"weights.{ending}")
    assert len(list(bilm.parameters())) == len(list(read.parameters()))
    for name, parameter in bilm.named_parameters():
        assert torch.equal(read.get_parameter(name), parameter), name


def test_files_hold_bilm_tfs_tensors_and_no_others(make_bilm, tmp_path):
    bilm = make_bilm(bidirectional=False, projection=False, projection_dim=None, n_highway=0)
    save_weights(bilm, tmp_path / "weights.hdf5")
    cell = "RNN_0/RNN/MultiRNNCell/Cell{}/LSTMCell/"
    with h5py.File(tmp_path / "weights.hdf5") as file:
        assert file[cell.format(0) + "W_0"].shape == (23 + 20, 80)
        assert file[cell.format(1) + "W_0"].shape == (20 + 20, 80)
        assert sorted(file[cell.format(1)]) == ["B", "W_0"]
        assert sorted(file) == ["CNN", "RNN_0", "char_embed"]


def test_parameters_keep_their_names_across_variants(make_bilm):
    names = {name for name, _ in make_bilm().named_parameters()}
    for changes in VARIANTS + UNEQUAL:
        bilm = make_bilm(**changes)
        assert bilm.options == BilmOptions.from_dict(bilm.options.source)
        missing = names - {name for name, _ in bilm.named_parameters()}
        options = bilm.options
        for name in missing:
            assert (
                ("highways" in name and options.char_cnn.n_highway == 0)
                or ("encoder.projection" in name and not options.char_cnn.projection)
                or ("backward_layers" in name and not options.bidirectional)
                or (".1." in name and options.lstm.n_layers == 1)
                or ("projection" in name and options.lstm.projection_dim is None)
            ), name


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


@pytest.mark.parametrize("changes", VARIANTS[2:5:2], ids=named)
def test_elmo_reads_what_has_layers_of_one_width(make_bilm, make_options, tmp_path, changes):
    (tmp_path / "options.json").write_text(json.dumps(make_options(**changes)))
    bilm = make_bilm(**changes)
    save_weights(bilm, tmp_path / "weights.hdf5")
    read = load_bilm(tmp_path / "options.json", tmp_path / "weights.hdf5")
    ids = bilm.characters.batch_ids([["any", "word"]])
    assert torch.equal(read(ids).layers, bilm(ids).layers)
