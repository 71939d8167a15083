"""Pairs are counted as by hand."""

import numpy
import pytest

from elmo_plugin.analysis.minimal_pairs import JudgedPair, PairAccuracy, judge
from elmo_plugin.analysis.surprisal import Scorer, SentenceScore
from elmo_plugin.corpora.minimal_pairs import MinimalPair
from tests.analysis.language_model import make_softmax


def score(forward, backward):
    zero = numpy.zeros(1)
    ends = {"forward": forward, "backward": backward, "both": (forward + backward) / 2.0}
    return SentenceScore(["x"], [True], zero, zero, zero, ends)


def judged(uid, good, bad, phenomenon="agreement", field="syntax"):
    pair = MinimalPair(("a",), ("b",), uid, phenomenon, field)
    return JudgedPair(pair, score(*good), score(*bad))


def test_groups_are_counted_by_hand():
    accuracy = PairAccuracy()
    # Right forward, wrong backward, right in sum.
    accuracy.add(judged("one", (1.0, 2.0), (3.0, 1.0)))
    # A tie forward is wrong.
    accuracy.add(judged("one", (2.0, 1.0), (2.0, 3.0)))
    accuracy.add(judged("two", (5.0, 5.0), (4.0, 4.0), field="semantics"))
    accuracy.add(judged("three", (1.0, 1.0), (2.0, 2.0), phenomenon="", field=""))
    rows = [tuple(row.values()) for row in accuracy.table()]
    assert rows == [
        ("set", "one", 2, 0.5, 0.5, 1.0),
        ("set", "two", 1, 0.0, 0.0, 0.0),
        ("set", "three", 1, 1.0, 1.0, 1.0),
        ("phenomenon", "agreement", 3, 1 / 3, 1 / 3, 2 / 3),
        ("field", "syntax", 2, 0.5, 0.5, 1.0),
        ("field", "semantics", 1, 0.0, 0.0, 0.0),
        ("all", "all", 4, 0.5, 0.5, 0.75),
    ]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_each_pair_gets_the_scores_of_its_own_sentences(shared_bilm, batch_size):
    scorer = Scorer(shared_bilm, make_softmax(shared_bilm.output_dim // 2))
    pairs = [
        MinimalPair(("They",) * number, ("play",) * (number + 1), "set") for number in range(1, 40)
    ]
    found = list(judge(scorer, iter(pairs), batch_size))
    assert [one.pair for one in found] == pairs
    for one in found:
        (alone,) = scorer.score([one.pair.bad])
        assert one.good.words == one.pair.good
        assert one.bad.surprisal("both") == pytest.approx(alone.surprisal("both"), rel=1e-5)
