"""What a sentence starts from: zeros, the batch before, or a warm-up."""

import copy

import pytest
import torch

from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import SlowBilm, assert_layers_equal, read_arrays, relative_error


def layers(bilm, words):
    return bilm(bilm.characters.batch_ids([words])).layers[:, 0]


@pytest.fixture
def slow(shared_bilm, weight_file):
    return SlowBilm(shared_bilm.options.source, read_arrays(weight_file))


@pytest.fixture
def stateful(bilm):
    bilm.stateful = True
    return bilm


@pytest.fixture
def warm(bilm):
    bilm.warm_up = True
    return bilm


def test_carried_state_is_the_slow_loops_state(stateful, slow, sentences):
    states = None
    for words in sentences + sentences[::-1]:
        expected, states = slow.run(words, states)
        assert_layers_equal(layers(stateful, words), expected)


def test_rows_that_a_smaller_batch_lacks_keep_their_state(stateful, slow, sentences):
    first, second = sentences[0], sentences[5]
    read = stateful.characters.batch_ids
    stateful(read([first, second]))
    stateful(read([second]))
    found = stateful(read([first, first, second])).layers
    row_0 = slow.run(first, slow.run(second, slow.run(first)[1])[1])[0]
    row_1 = slow.run(first, slow.run(second)[1])[0]
    assert_layers_equal(found[:, 0, : len(first) + 2], row_0)
    assert_layers_equal(found[:, 1, : len(first) + 2], row_1)
    # A row that never was starts from zeros.
    assert_layers_equal(found[:, 2, : len(second) + 2], slow.layers(second))


def test_forgetting_the_state_starts_from_zeros(stateful, golden, sentences):
    layers(stateful, sentences[5])
    assert relative_error(layers(stateful, sentences[0])[1], golden[0][1]) > 0.01
    stateful.reset_state()
    assert_layers_equal(layers(stateful, sentences[0]), golden[0])


def test_gradients_do_not_reach_the_batch_before(stateful, sentences):
    layers(stateful, sentences[0]).sum().backward()
    before = copy.deepcopy(stateful.lstm.forward_layers[0].input.weight.grad)
    layers(stateful, sentences[1]).sum().backward()
    assert not torch.equal(before, stateful.lstm.forward_layers[0].input.weight.grad)


def test_a_warm_start_is_the_state_after_an_empty_sentence(warm, slow, sentences):
    states = slow.run([])[1]
    ids = warm.characters.batch_ids(sentences)
    found = warm(ids).layers
    for row, words in enumerate(sentences):
        expected = slow.layers(words, states)
        assert_layers_equal(found[:, row, : len(words) + 2], expected)
        assert relative_error(expected[1], slow.layers(words)[1]) > 0.01
    assert torch.equal(warm(ids).layers, found)


def test_two_beginnings_at_once_are_refused(make_bilm):
    with pytest.raises(ConfigurationError, match="`stateful` or `warm_up` of a biLM, found both"):
        make_bilm(stateful=True, warm_up=True)
