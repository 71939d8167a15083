import numpy
import pytest

from elmo_plugin.analysis.word_senses import SenseProbe, SenseScore, words_of
from elmo_plugin.corpora.word_senses import SenseInstance, SenseSentence
from elmo_plugin.util.bootstrap import bootstrap
from elmo_plugin.util.errors import ConfigurationError


class Table:
    """Vectors by word, in two layers: as in the table, and all the same."""

    name, layers, dim, fingerprint = "table", ["table", "same"], 2, "table"
    vectors = {
        "a": [4, 0], "b": [0, 1], "c": [3, 3], "d": [1, 3], "e": [5, 1], "f": [0, 0], "x": [9, 9]
    }  # fmt: skip

    def embed(self, sentences):
        for words in sentences:
            rows = numpy.array([self.vectors[word] for word in words], dtype="f4")
            yield numpy.stack([rows, numpy.ones_like(rows)])


def make(tokens, corpus="train", **senses):
    """Annotated tokens by their letters: `a="play:1"`; several senses are joined by a blank."""
    tokens = tokens.split()
    instances = [
        SenseInstance(
            position,
            (senses[token].partition(":")[0], "VERB" if token == "e" else "NOUN"),
            tuple(senses[token].split()),
        )
        for position, token in enumerate(tokens)
        if token in senses
    ]
    return SenseSentence(corpus, tuple(tokens), tuple(instances))


TRAIN = [
    # play:1 has the vectors of a and a: their mean is (4, 0).
    make("a x a", a="play:1"),
    # play:2 has b, and the unit a_b: mean of (0, 1) and (2, 0.5).
    make("b", b="play:2"),
    make("a_b x", a_b="play:2"),
    # Another part of speech, and a lemma that test lacks.
    make("e", e="play:3"),
    make("x", x="owl:1"),
]
FIRST = {("play", "NOUN"): "play:2", ("hut", "NOUN"): "hut:7", ("play", "VERB"): "play:9"}


def probe(tmp_path, *test):
    return SenseProbe(TRAIN, list(test), FIRST, tmp_path)


def answers(found, layer="table"):
    return dict(found.nearest_senses(Table()))[layer]


def test_the_nearest_mean_by_cosine_is_the_answer(tmp_path):
    found = probe(tmp_path, make("c x e_a d", "s", c="play:1", e_a="play:1", d="play:2"))
    # The mean of play:2 is (1, 0.75): to c its cosine is 0.99, that of play:1 0.71. e_a is
    # (4.5, 0.5): 0.86 and 0.99. To d: 0.82 and 0.32.
    assert answers(found) == ["play:2", "play:1", "play:2"]
    # The sums are those of each occurrence: play:1 twice, play:2 twice.
    assert found.counts == {("play", "NOUN"): {"play:1": 2, "play:2": 2}}
    # Only sentences with the lemmas of test get vectors.
    done = []
    list(probe(tmp_path, make("c", "s", c="play:1")).nearest_senses(Table(), done.append))
    assert sum(done) == found.num_texts == 4
    # All correct senses of a training word count. Means: (4, 0), and (2, 0.5).
    train = [make("a", a="play:1 play:2"), make("b", b="play:2")]
    found = SenseProbe(train, [make("c", "s", c="play:1")], FIRST, tmp_path)
    assert found.counts[("play", "NOUN")] == {"play:1": 1, "play:2": 2}
    assert answers(found) == ["play:2"]


def test_of_equally_near_senses_the_more_frequent_one_counts(tmp_path):
    test = make("c f", "s", c="play:2", f="play:2")
    train = [*TRAIN, make("c", c="play:2")]
    found = SenseProbe(train, [test], FIRST, tmp_path)
    assert answers(found, "same") == ["play:2", "play:2"]
    # Zero is near to nothing.
    assert answers(found)[1] == "play:2"


def test_lemmas_that_training_lacks_get_their_first_sense_and_others_no_answer(tmp_path):
    test = make("a b c e", "s", a="hut:1", b="shed:1", c="play:2", e="play:3")
    found = probe(tmp_path, test)
    assert answers(found) == ["hut:7", None, "play:2", "play:3"]
    assert found.first_senses() == ["hut:7", None, "play:2", "play:9"]
    # The first of two equally frequent senses.
    assert found.most_frequent_senses() == ["hut:7", None, "play:1", "play:3"]


def test_scores_are_those_counted_by_hand(tmp_path):
    first = make("a b", "s1", a="play:1 play:2", b="hut:1")
    second = make("c e x", "s2", c="shed:1", e="play:3", x="play:5")
    found = probe(tmp_path, first, second)
    scores = found.scores(["play:2", "hut:7", None, "play:3", "play:1"])
    assert scores == {
        "s1": SenseScore(1, 2, 2),
        "s2": SenseScore(1, 2, 3),
        "NOUN": SenseScore(1, 3, 4),
        "VERB": SenseScore(1, 1, 1),
        "all": SenseScore(2, 4, 5),
    }
    total = scores["all"]
    # 2 · 0.5 · 0.4 / 0.9
    assert total.f1 == pytest.approx(0.4444, abs=1e-4)
    nothing = SenseScore(0, 0, 3)
    assert nothing.f1 == 0.0
    # A test set may have the name of the group of all.
    found = probe(tmp_path, make("c", "all", c="play:1"))
    assert found.scores(["play:1"])["all"] == SenseScore(1, 1, 1)


def test_the_interval_of_f1_is_over_sentences_also_those_without_annotated_words(tmp_path):
    test = [make("a b", "s", a="play:1", b="hut:1"), make("c", "s", c="shed:1")]
    # F1 is 1 in the first sentence, 0 in the second, whose word has no answer: a sample of the two
    # has 1, 2 · 2 / (4 + 1) or 0.
    found = probe(tmp_path, *test).f1(["play:1", "hut:1", None])
    assert found.value == pytest.approx(0.8) and found.interval() == (0.0, 1.0)
    given = ["play:1", None, None]
    last = probe(tmp_path, *test, *[make("x", "s")] * 3).f1(given)
    assert last.value == probe(tmp_path, *test).f1(given).value
    assert last.rounded_samples() == bootstrap([2, 0, 0, 0, 0], [3, 1, 0, 0, 0]).rounded_samples()


def test_a_training_part_without_any_of_the_lemmas_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match=r"found none of 1 \(shed NOUN"):
        probe(tmp_path, make("c", "s", c="shed:1"))


@pytest.mark.parametrize(
    "tokens, words, spans",
    [
        (["ice_cream", "melts"], ["ice", "cream", "melts"], [(0, 2), (2, 3)]),
        (["_", "a__b", "c_"], ["_", "a", "b", "c"], [(0, 1), (1, 3), (3, 4)]),
    ],
)
def test_multi_word_units_are_split(tokens, words, spans):
    assert words_of(tokens) == (words, spans)
