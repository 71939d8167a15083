import json

import numpy
import pytest

from elmo_plugin.analysis import features as module
from elmo_plugin.analysis.features import SpannedSentence, compute_features
from elmo_plugin.util.errors import ConfigurationError


class Lengths:
    """A representation with two layers: the length of a word and its place, and their negatives."""

    name, layers, dim, fingerprint = "lengths", ["first", "second"], 2, "lengths"

    def __init__(self, value=1.0):
        self.num_embedded, self.value = 0, value

    def embed(self, sentences):
        for words in sentences:
            self.num_embedded += 1
            rows = [[len(word) * self.value, place] for place, word in enumerate(words)]
            yield numpy.array([rows, -numpy.array(rows, dtype="f4")], dtype="f4")


TEXTS = [
    SpannedSentence(["ice", "cream", "melts"], [(0, 2), (2, 3)]),
    SpannedSentence(["yes"], []),
    SpannedSentence(["owls", "hoot"], [(1, 2), (0, 1)]),
    SpannedSentence(["a"], [(0, 1)]),
]
# By hand: means over spans.
EXPECTED = [[4.0, 0.5], [5.0, 2.0], [4.0, 1.0], [4.0, 0.0], [1.0, 0.0]]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(module, "_SENTENCES_PER_COMMIT", 2)


def rows(features):
    return [features.layer(number).tolist() for number in (0, 1)]


def test_each_span_has_the_mean_of_its_words_in_each_layer(tmp_path):
    done = []
    features = compute_features(Lengths(), TEXTS, tmp_path / "new", done.append)
    assert (features.num_rows, features.dim) == (5, 2)
    assert features.layer(0).dtype == numpy.float16
    assert rows(features) == [EXPECTED, (-numpy.array(EXPECTED)).tolist()]
    assert done == [0, 2, 2]


def test_what_was_computed_is_used_again(tmp_path):
    folder = compute_features(Lengths(), TEXTS, tmp_path).folder
    # Files of earlier versions have the same state.
    state = {"num_sentences": 4, "num_rows": 5, "complete": True}
    assert json.loads((folder / "progress.json").read_text()) == state
    again, done = Lengths(), []
    assert rows(compute_features(again, TEXTS, tmp_path, done.append))[0] == EXPECTED
    assert again.num_embedded == 0
    assert done == [4]


def test_another_text_other_spans_or_another_representation_are_computed(tmp_path):
    compute_features(Lengths(), TEXTS, tmp_path)
    other_spans = [SpannedSentence(TEXTS[0].words, [(0, 3)]), *TEXTS[1:]]
    for texts, fingerprint in ((TEXTS[1:], "lengths"), (other_spans, "lengths"), (TEXTS, "other")):
        representation = Lengths()
        representation.fingerprint = fingerprint
        compute_features(representation, texts, tmp_path)
        assert representation.num_embedded == len(texts)


@pytest.mark.parametrize("value", [numpy.nan, 1e6])
def test_numbers_that_half_precision_cannot_represent_are_refused(tmp_path, value):
    with pytest.raises(ConfigurationError, match="finite vectors"):
        compute_features(Lengths(value=value), TEXTS, tmp_path)


def test_a_text_without_spans_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="a text with words"):
        compute_features(Lengths(), TEXTS[1:2], tmp_path)
