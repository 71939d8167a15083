"""Pairs are counted as by hand."""

from types import SimpleNamespace

import pytest

from elmo_plugin.analysis.surprisal import DIRECTIONS, Scorer, pair_accuracies
from elmo_plugin.corpora.minimal_pairs import MinimalPair
from tests.analysis.language_model import make_softmax


class Known:
    """A scorer of sentences of two numbers, their surprisals forward and backward."""

    def score(self, sentences, batch_size):
        for forward, backward in sentences:
            known = dict(zip(DIRECTIONS, (forward, backward, (forward + backward) / 2)))
            yield SimpleNamespace(surprisal=known.get)


def test_groups_are_counted_by_hand():
    pairs = [
        # Right forward, wrong backward, right in sum.
        MinimalPair((1.0, 2.0), (3.0, 1.0), "one", "agreement", "syntax"),
        # A tie forward is wrong.
        MinimalPair((2.0, 1.0), (2.0, 3.0), "one", "agreement", "syntax"),
        MinimalPair((5.0, 5.0), (4.0, 4.0), "two", "agreement", "semantics"),
        MinimalPair((1.0, 1.0), (2.0, 2.0), "three", "", ""),
    ]
    done = []
    rows = [tuple(row) for row in pair_accuracies(Known(), pairs, on_progress=done.append)]
    assert done == [1] * 4
    assert rows == [
        ("set", "one", 2, [0.5, 0.5, 1.0]),
        ("set", "two", 1, [0.0, 0.0, 0.0]),
        ("set", "three", 1, [1.0, 1.0, 1.0]),
        ("phenomenon", "agreement", 3, [1 / 3, 1 / 3, 2 / 3]),
        ("field", "syntax", 2, [0.5, 0.5, 1.0]),
        ("field", "semantics", 1, [0.0, 0.0, 0.0]),
        ("all", "all", 4, [0.5, 0.5, 0.75]),
    ]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_each_pair_gets_the_scores_of_its_own_sentences(shared_bilm, batch_size):
    scorer = Scorer(shared_bilm, make_softmax(shared_bilm.output_dim // 2))
    pairs = [
        MinimalPair(("They",) * number, ("play", "the") * (40 - number), str(number))
        for number in range(1, 40)
    ]
    for row in pair_accuracies(scorer, pairs, batch_size)[:-1]:
        pair = pairs[int(row.name) - 1]
        (good,), (bad,) = (scorer.score([words]) for words in (pair.good, pair.bad))
        assert row.shares == [good.surprisal(name) < bad.surprisal(name) for name in DIRECTIONS]
