import pytest

from elmo_plugin.tasks.squad.metric import SquadScores, exact_match, f1

# Rule, answer, gold answer, exact match, and F1; counted by hand.
CASES = [
    ("the same", "in 1784", "in 1784", 1, 1),
    ("case", "THOMAS Reed", "thomas reed", 1, 1),
    ("articles", "The miller of a town", "miller of an the town", 1, 1),
    ("no article within a word", "theatre", "atre", 0, 0),
    ("no article within a number", "a1", "1", 0, 0),
    ("white space of every kind", " two\thours\u00a0\n", "two hours", 1, 1),
    ("punctuation", "$4,200!", "4200", 1, 1),
    ("punctuation leaves no gap", "well-known", "wellknown", 1, 1),
    ("punctuation leaves no gap", "well-known", "well known", 0, 0),
    ("an article is seen once punctuation is gone", '"the" end', "end", 1, 1),
    ("an article is none once punctuation is gone", "a-team", "team", 0, 0),
    ("other quotation marks stay", "“Lune”", "Lune", 0, 0),
    ("other dashes stay", "3–5", "35", 0, 0),
    ("an article stands beside another dash", "the—end", "—end", 1, 1),
    ("other apostrophes stay", "hours’ walk", "hours' walk", 0, 1 / 2),
    ("other currencies stay", "£12,000", "12000", 0, 0),
    ("letters of every script", "PEDRO NÚÑEZ", "Pedro Núñez", 1, 1),
    ("1 of 2 words is right, 1 of 3 is found", "Ruth Wells", "old Ruth Ashby", 0, 2 / 5),
    ("order does not count for F1", "white and red", "red and white", 0, 1),
    ("a word counts as often as it occurs", "no no no", "no no yes", 0, 2 / 3),
    ("a word counts as often as it occurs", "no", "no no no", 0, 1 / 2),
    ("nothing in common", "cheese", "wine", 0, 0),
    ("no word on either side", "the", "?", 1, 0),
    ("no word in the answer", "", "cheese", 0, 0),
    ("no word in the gold answer", "cheese", "a", 0, 0),
]


@pytest.mark.parametrize("rule, answer, gold, exact, overlap", CASES)
def test_answers_count_as_by_hand(rule, answer, gold, exact, overlap):
    assert exact_match(answer, gold) == exact_match(gold, answer) == exact
    assert f1(answer, gold) == pytest.approx(overlap, abs=1e-15)
    assert f1(gold, answer) == pytest.approx(overlap, abs=1e-15)


def test_the_best_gold_answer_counts_for_each_score():
    metric = SquadScores()
    # The first gold answer is met without its words, the second has a word in common.
    metric(["the"], [["an", "no"]])
    assert metric.get_metric(reset=True) == {"em": 1.0, "f1": 0.0}
    # F1: 2/3, 1/2 and 0.
    metric(["Ruth Wells"], [["Wells", "Ruth Ashby", "a farmer"]])
    assert metric.get_metric() == {"em": 0.0, "f1": pytest.approx(2 / 3)}


def test_scores_are_means_over_the_questions_of_all_batches():
    metric = SquadScores()
    metric(["1784", "monks"], [["1784", "in 1784"], ["sailors"]])
    metric([], [])
    metric(["about six"], [["six"]])
    expected = {"em": pytest.approx(1 / 3), "f1": pytest.approx((1 + 0 + 2 / 3) / 3)}
    assert metric.get_metric() == metric.get_metric(reset=True) == expected
    assert metric.get_metric() == {}
