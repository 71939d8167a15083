import numpy
import pytest
from scipy.stats import binomtest

from elmo_plugin.analysis.bootstrap import bootstrap_interval


def test_for_sentences_of_one_word_the_interval_is_nearly_that_of_wilson():
    correct = [1] * 1800 + [0] * 200
    found = bootstrap_interval(correct, [1] * 2000)
    expected = binomtest(1800, 2000).proportion_ci(method="wilson")
    assert found.low == pytest.approx(expected.low, abs=0.003)
    assert found.high == pytest.approx(expected.high, abs=0.003)


def test_sentences_are_drawn_and_not_words():
    # All words of a sentence are right or wrong together, so there is as much to learn from them
    # as from one word each.
    correct = numpy.array([1] * 90 + [0] * 10)
    assert bootstrap_interval(correct * 50, [50] * 100) == bootstrap_interval(correct, [1] * 100)


def test_it_is_the_same_each_time_and_does_not_leave_the_range_of_shares():
    assert bootstrap_interval([3, 0, 2], [4, 0, 2]) == bootstrap_interval([3, 0, 2], [4, 0, 2])
    assert bootstrap_interval([2, 0], [2, 0]) == (0.0, 1.0)
    assert bootstrap_interval([2, 3], [2, 3]) == (1.0, 1.0)
