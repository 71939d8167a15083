import numpy
import pytest

from elmo_plugin.analysis.tag_probe import MIX, TagProbe
from elmo_plugin.corpora.tagged_words import TaggedSentence
from elmo_plugin.util.errors import ConfigurationError


def sentence(text):
    cells = [word.split("/") for word in text.split()]
    return TaggedSentence(*(tuple(column) for column in zip(*cells)))


SPLITS = {
    "train": [sentence("the/D dog/N barks/V"), sentence("the/D bark/N"), sentence("dogs/N bark/V")],
    "dev": [sentence("the/D bark/V"), sentence("cats/N")],
    "test": [sentence("the/D odd/A bark/N"), sentence("dogs/V run/V")],
}


class Spelling:
    """One-hot vectors of the last letter: a classifier learns one tag for each."""

    name, layers, dim, fingerprint = "spelling", ["letter", "nothing"], 26, "spelling"

    def embed(self, sentences):
        for words in sentences:
            rows = numpy.zeros((2, len(words), 26), dtype="f4")
            for place, word in enumerate(words):
                rows[0, place, ord(word[-1]) - ord("a")] = 1.0
            yield rows


def test_the_most_frequent_tag_is_counted(tmp_path):
    score = TagProbe(SPLITS, tmp_path).most_frequent_tag()
    # Unseen words get N, the tag of three words. `bark` is N and V once each: N comes first.
    assert score.dev.overall.value == pytest.approx(2 / 3) and score.dev.unseen == 1.0
    # `odd` has a tag that training lacks.
    assert score.test.overall.value == pytest.approx(2 / 5) and score.test.unseen == 0.0
    assert score.classifier is None
    low, high = score.dev.overall.interval()
    assert low <= score.dev.overall.value <= high and score.from_previous is None


def test_a_classifier_of_each_layer_and_of_the_mix_is_scored(tmp_path):
    probe = TagProbe(SPLITS, tmp_path)
    representation = Spelling()
    features = probe.features(representation)
    letter, nothing, mix = probe.scores(representation, features, with_mix=True)
    assert [score.layer for score in (letter, nothing, mix)] == ["letter", "nothing", MIX]
    # By the last letters of training: e D, g N, s N or V, k N or V. Without any, N.
    assert nothing.dev.overall.value == pytest.approx(1 / 3)
    assert nothing.test.overall.value == pytest.approx(1 / 5)
    # Of dev, `the` and `cats` for certain.
    assert letter.dev.overall.value >= 2 / 3 - 1e-9 and letter.classifier.converged
    assert letter.from_previous is None
    assert nothing.from_previous.value == pytest.approx(1 / 5 - letter.test.overall.value)
    low, high = nothing.from_previous.interval
    assert low <= nothing.from_previous.value <= high
    # No constant layer can help.
    assert mix.classifier.layer_weights[0] > 0.9


def test_tags_that_training_lacks_are_errors(tmp_path):
    probe = TagProbe(SPLITS, tmp_path)
    assert probe.tags == ["D", "N", "V"]
    splits = {**SPLITS, "test": [sentence("the/X dog/X")]}
    probe = TagProbe(splits, tmp_path)
    scores = list(probe.scores(Spelling(), probe.features(Spelling())))
    assert [score.test.overall.value for score in scores] == [0.0, 0.0]
    assert scores[0].test.unseen is None


def test_a_training_set_with_one_tag_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="at least two tags to learn, found 1: N"):
        TagProbe({**SPLITS, "train": [sentence("a/N b/N")]}, tmp_path)
