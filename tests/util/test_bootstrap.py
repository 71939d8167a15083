import numpy
import pytest
from scipy.stats import binomtest

from elmo_plugin.util.bootstrap import bootstrap


def test_for_sentences_of_one_word_the_interval_is_nearly_that_of_wilson():
    correct = [1] * 1800 + [0] * 200
    found = bootstrap(correct, [1] * 2000).interval()
    expected = binomtest(1800, 2000).proportion_ci(method="wilson")
    assert found.low == pytest.approx(expected.low, abs=0.003)
    assert found.high == pytest.approx(expected.high, abs=0.003)


def test_sentences_are_drawn_and_not_words():
    # All words of a sentence are right or wrong together, so there is as much to learn from them
    # as from one word each.
    correct = numpy.array([1] * 90 + [0] * 10)
    assert (
        bootstrap(correct * 50, [50] * 100).interval() == bootstrap(correct, [1] * 100).interval()
    )


def test_it_is_the_same_each_time_and_does_not_leave_the_range_of_shares():
    assert bootstrap([3, 0, 2], [4, 0, 2]).interval() == bootstrap([3, 0, 2], [4, 0, 2]).interval()
    assert bootstrap([2, 0], [2, 0]).interval() == (0.0, 1.0)
    assert bootstrap([2, 3], [2, 3]).interval() == (1.0, 1.0)


def test_the_interval_of_a_difference_is_that_of_a_paired_test():
    # Of 2,000 words, 60 are right in the first only and 100 in the second only.
    first = numpy.array([1] * 1760 + [0] * 240)
    second = numpy.array([1] * 1700 + [0] * 60 + [1] * 100 + [0] * 140)
    found = bootstrap(second, [1] * 2000).minus(bootstrap(first, [1] * 2000))
    assert found.value == pytest.approx(0.02)
    half = 1.96 * (60 + 100 - 40**2 / 2000) ** 0.5 / 2000
    assert found.interval.low == pytest.approx(0.02 - half, abs=0.001)
    assert found.interval.high == pytest.approx(0.02 + half, abs=0.001)
    # The intervals of the two scores overlap all the same.
    assert (
        bootstrap(first, [1] * 2000).interval().high > bootstrap(second, [1] * 2000).interval().low
    )


def test_scores_may_have_other_totals():
    found = bootstrap([2, 4], [4, 8]).minus(bootstrap([1, 2], [4, 8]))
    assert found == (0.25, (0.25, 0.25))
    assert bootstrap([2, 2], [2, 3]).minus(bootstrap([2, 2], [2, 3])) == (0.0, (0.0, 0.0))
