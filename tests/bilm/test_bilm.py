"""What a biLM gives: against golden activations, a slow loop, and itself."""

import copy
import random

import pytest
import torch

from elmo_plugin.bilm import Bilm, BilmOptions, save_weights
from elmo_plugin.modules import tuning
from tests.bilm.oracle import (
    SlowBilm,
    assert_layers_equal,
    random_batch,
    read_arrays,
)

# Forward only, and without one or the other projection.
VARIANTS = [
    dict(bidirectional=False),
    dict(bidirectional=False, n_layers=1, activation="tanh"),
    dict(projection_dim=None),
    dict(projection_dim=None, proj_clip=0.01, use_skip_connections=False),
    dict(projection=False, projection_dim=23),
    dict(projection=False, projection_dim=None, dim=23, n_highway=0),
    dict(bidirectional=False, projection=False, projection_dim=None, dim=23, activation="tanh"),
]


def named(changes):
    return ",".join(f"{name}={value}" for name, value in changes.items())


def read(bilm, sentences):
    """Layers of each sentence, its marks included."""
    output = bilm(bilm.characters.batch_ids(sentences))
    for row, words in enumerate(sentences):
        assert output.mask[row].sum() == len(words) + 2
    assert output.mask.dtype == torch.bool
    assert not output.layers[:, ~output.mask].any()
    return [output.layers[:, row, : len(words) + 2] for row, words in enumerate(sentences)]


def slow_twin(bilm, tmp_path) -> SlowBilm:
    save_weights(bilm, tmp_path / "weights.hdf5")
    return SlowBilm(bilm.options.source, read_arrays(tmp_path / "weights.hdf5"))


@pytest.mark.parametrize("gradients", [True, False])
def test_layers_are_those_of_the_independent_float64_loops(bilm, sentences, golden, gradients):
    with torch.set_grad_enabled(gradients):
        layers = read(bilm, sentences)
    assert layers[0].requires_grad == gradients
    for found, expected in zip(layers, golden):
        assert_layers_equal(found, expected)


def test_the_slow_loop_of_these_tests_gives_the_golden_activations(
    shared_bilm, weight_file, sentences, golden
):
    slow = SlowBilm(shared_bilm.options.source, read_arrays(weight_file))
    for words, expected in zip(sentences, golden):
        assert_layers_equal(slow.layers(words), expected, 1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        dict(n_layers=1),
        dict(n_layers=2),
        dict(n_layers=4),
        dict(n_layers=3, use_skip_connections=False),
        dict(cell_clip=None, proj_clip=None),
        dict(cell_clip=0, proj_clip=0.5),
        dict(activation="tanh", n_highway=0),
        dict(n_highway=3, filters=[[7, 3]], embedding=3),
        dict(max_characters_per_token=8, filters=[[1, 4], [8, 4]]),
        dict(dim=5, projection_dim=9),
        *VARIANTS,
    ],
    ids=named,
)
@pytest.mark.parametrize("gradients", [True, False])
def test_every_option_agrees_with_the_slow_loop(make_bilm, tmp_path, changes, gradients):
    bilm = make_bilm(**changes)
    assert bilm.num_layers == bilm.options.lstm.n_layers + 1
    slow = slow_twin(bilm, tmp_path)
    batch = random_batch(random.Random(1), 4, 6) + [["ж" * 60, "a" * 48, "a" * 49, "<S>"]]
    with torch.set_grad_enabled(gradients):
        for words, found in zip(batch, read(bilm, batch)):
            assert_layers_equal(found, slow.layers(words))


def test_padding_order_and_company_do_not_change_a_sentence(shared_bilm, sentences):
    together = read(shared_bilm, sentences)
    backwards = read(shared_bilm, sentences[::-1])[::-1]
    long = read(shared_bilm, [*sentences, ["word"] * 70])
    for row, words in enumerate(sentences):
        (alone,) = read(shared_bilm, [words])
        for other in (together[row], backwards[row], long[row]):
            assert_layers_equal(other, alone, 2e-6)


def test_empty_sentences_alone_give_only_their_marks(shared_bilm, golden):
    output = shared_bilm(torch.zeros(3, 0, 50, dtype=torch.long))
    assert output.layers.shape == (3, 3, 2, 32)
    assert output.mask.all()
    for row in range(3):
        assert_layers_equal(output.layers[:, row], golden[3])


@pytest.mark.parametrize("name", ["MAX_INPUT_GATES", "MAX_WINDOWS"])
@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("limit", [1, 700])
def test_computing_in_smaller_pieces_changes_nothing(
    bilm, sentences, golden, monkeypatch, name, gradients, limit
):
    monkeypatch.setattr(tuning, name, limit)
    with torch.set_grad_enabled(gradients):
        for found, expected in zip(read(bilm, sentences), golden):
            assert_layers_equal(found, expected)


def test_bfloat16_stays_within_one_percent_in_every_layer(make_bilm):
    # Initial weights, whose scale is that of training; clips rarely matter.
    changes = dict(filters=[[1, 32], [2, 64], [3, 128]], dim=256, projection_dim=64, embedding=16)
    torch.manual_seed(5)
    bilm = Bilm(BilmOptions.from_dict(make_bilm(**changes).options.source)).eval()
    ids = bilm.characters.batch_ids(random_batch(random.Random(5), 8, 12))
    with torch.no_grad():
        exact = bilm(ids)
        rounded = copy.deepcopy(bilm).to(torch.bfloat16)(ids)
    assert rounded.layers.dtype == torch.bfloat16
    assert torch.equal(rounded.mask, exact.mask)
    assert_layers_equal(rounded.layers, exact.layers, 0.01)


def with_gap(bilm):
    ids = bilm.characters.batch_ids([["a", "b"]])
    ids[0, 0] = 0
    return ids


@pytest.mark.parametrize(
    "ids, expected",
    [
        (lambda bilm: torch.ones(2, 3, 49).long(), r"found \(2, 3, 49\). Give the token indexer"),
        (lambda bilm: torch.ones(3, 50).long(), r"found \(3, 50\).$"),
        (lambda bilm: torch.full((1, 1, 50), 262), "ids below 262, found 262"),
        (with_gap, "padding before a token"),
    ],
)
def test_ids_that_cannot_be_are_refused(shared_bilm, ids, expected):
    with pytest.raises(ValueError, match=expected):
        shared_bilm(ids(shared_bilm))


def test_parameters_fit_a_bilm_whose_options_lay_elsewhere(bilm):
    other = Bilm(bilm.options, source="/another/and/longer/path/options.json")
    other.load_state_dict(bilm.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(bilm.parameters(), other.parameters()))


def test_parameters_of_other_options_are_refused_even_where_the_shapes_agree(bilm):
    source = copy.deepcopy(bilm.options.source)
    source["lstm"]["cell_clip"] = 1
    other = Bilm(BilmOptions.from_dict(source))
    with pytest.raises(RuntimeError, match="expected `lstm.cell_clip` 1.*, found"):
        other.load_state_dict(bilm.state_dict())
