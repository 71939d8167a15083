"""`Scorer` against float64 loops over one sentence at a time."""

import json
from dataclasses import replace

import numpy
import pytest

from elmo_plugin.analysis.surprisal import Scorer
from elmo_plugin.bilm.pretraining import next_word_loss as softmax_module
from elmo_plugin.util.errors import ConfigurationError
from tests.analysis.language_model import WORDS, make_softmax
from tests.bilm.oracle import SlowBilm, read_arrays

SENTENCES = [
    "They play a play .".split(),
    [],
    "the".split(),
    "Nobody began the play of the owls , they say .".split(),
]


@pytest.fixture(scope="module")
def softmax(shared_bilm):
    return make_softmax(shared_bilm.output_dim // 2)


@pytest.fixture
def scorer(shared_bilm, softmax):
    return Scorer(shared_bilm, softmax)


@pytest.fixture(scope="module")
def slow(options_file, weight_file, softmax):
    """Log-probabilities of the whole vocabulary at each place: (2, num_words + 1, size)."""
    bilm = SlowBilm(json.loads(options_file.read_text()), read_arrays(weight_file))

    def chances(words):
        top = bilm.layers(words)[-1].numpy()
        dim = top.shape[1] // 2
        logits = numpy.stack([top[:-1, :dim], top[1:, dim:]]) @ softmax.weight.double().numpy().T
        logits += softmax.bias.double().numpy()
        return logits - numpy.log(numpy.exp(logits).sum(axis=-1, keepdims=True))

    return chances


def ids(words):
    return [WORDS.index(word) if word in WORDS else 2 for word in words]


def test_surprisals_are_those_of_float64_loops(scorer, slow):
    scores = list(scorer.score(SENTENCES))
    assert [score.words for score in scores] == SENTENCES
    for words, score in zip(SENTENCES, scores):
        forward, backward = slow(words)
        expected = {
            "forward": [-forward[place, id_] for place, id_ in enumerate([*ids(words), 1])],
            "backward": [-backward[place, id_] for place, id_ in enumerate([0, *ids(words)])],
        }
        assert score.forward == pytest.approx(expected["forward"][:-1], rel=1e-5)
        assert score.backward == pytest.approx(expected["backward"][1:], rel=1e-5)
        assert score.both == pytest.approx((score.forward + score.backward) / 2.0)
        assert score.ends["forward"] == pytest.approx(expected["forward"][-1], rel=1e-5)
        assert score.ends["backward"] == pytest.approx(expected["backward"][0], rel=1e-5)
        assert score.known == [word in WORDS for word in words]
        for direction, surprisals in expected.items():
            assert score.surprisal(direction) == pytest.approx(sum(surprisals), rel=1e-5)
            mean = sum(surprisals) / (len(words) + 1)
            assert score.perplexity(direction) == pytest.approx(numpy.exp(mean), rel=1e-5)
        product = score.perplexity("forward") * score.perplexity("backward")
        assert score.perplexity("both") == pytest.approx(product**0.5)


def test_damaged_weights_are_refused(shared_bilm, softmax):
    weight = softmax.weight.clone()
    weight[4, 0] = float("nan")
    damaged = Scorer(shared_bilm, replace(softmax, weight=weight))
    with pytest.raises(ConfigurationError, match="Expected finite surprisals"):
        list(damaged.score(SENTENCES))


@pytest.mark.parametrize("batch_size, most_logits", [(1, 2**23), (64, 64 * len(WORDS))])
def test_batches_and_pieces_change_nothing(scorer, batch_size, most_logits, monkeypatch):
    expected = list(scorer.score(SENTENCES * 9))
    monkeypatch.setattr(softmax_module, "_MAX_LOGITS", most_logits)
    for score, other in zip(scorer.score(SENTENCES * 9, batch_size), expected, strict=True):
        assert score.forward == pytest.approx(other.forward, rel=1e-5)
        assert score.backward == pytest.approx(other.backward, rel=1e-5)
