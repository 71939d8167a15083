"""
Where a name in capitals such as TC-A-4 stands, clusters and figures are those that the authors of
the reference scorer published along with it, to test it by.
"""

import re
from fractions import Fraction

import pytest

from elmo_plugin.tasks.coref import CorefScores

MEASURES = ("muc", "b3", "ceafe")
# Predicted and gold clusters, each mention a letter; precision and recall of each measure. Of a
# mention in two gold clusters, such as c, MUC and B³ see the last gold cluster only. TC-D and TC-E
# are the example of Bagga and Baldwin (1998), TC-F to TC-L those of Vilain et al. (1995).
CASES = """
TC-A-1: all is right:
    a bc def | a bc def | muc 1 1, b3 1 1, ceafe 1 1
TC-A-2: mentions and clusters are missing:
    a de | a bc def | muc 1 1/3, b3 1 7/18, ceafe 9/10 3/5
TC-A-3: mentions and clusters are spurious:
    a bcx defy z | a bc def | muc 3/5 1, b3 55/108 1, ceafe 93/140 31/35
TC-A-4: some are missing, others spurious:
    a bcx dy z | a bc def | muc 1/3 1/3, b3 17/42 5/9, ceafe 11/20 11/15
TC-A-5: a mention with other bounds is another one:
    a bcxB dy z | a bc def | muc 1/4 1/3, b3 5/16 5/9, ceafe 31/60 31/45
TC-A-6: in a cluster that is mapped to none:
    a bcx dy Bz | a bc def | muc 1/4 1/3, b3 17/48 5/9, ceafe 11/20 11/15
TC-A-10: single mentions:
    a b c d e f | a bc def | muc 0 0, b3 1 1/2
TC-A-11: one cluster:
    abcdef | a bc def | muc 3/5 1, b3 7/18 1
TC-A-12: single, some spurious:
    a x y c d e z | a bc def | muc 0 0, b3 4/7 13/36
TC-A-13: one cluster, some spurious:
    axycdez | a bc def | muc 1/6 1/3, b3 6/49 17/36
a mention in two gold clusters:
    abc de | abc cd | muc 1/3 1/3, b3 17/30 3/5, ceafe 3/4 3/4
a mention in two gold clusters, the other one last:
    abc de | cd abc | muc 2/3 2/3, b3 7/10 7/10, ceafe 3/4 3/4
TC-D-1:
    12345 6789ABC | 12345 67 89ABC | muc 9/10 1, b3 16/21 1
TC-E-1:
    1234589ABC 67 | 12345 67 89ABC | muc 9/10 1, b3 7/12 1
TC-F-1:
    AB CD | ABCD | muc 1 2/3
TC-G-1:
    ABCD | AB CD | muc 2/3 1
TC-J-1:
    AC | ABC | muc 1 1/2
TC-K-1:
    ABC DEF GHI | BCDEGHJ | muc 1/2 1/2
TC-L-1:
    AB CD FGH | ABC DEFG | muc 1/2 2/5
TC-N-1: single mentions count in all but MUC:
    a b c | a b c | muc 0 0, b3 1 1, ceafe 1 1
the two most similar clusters are not mapped to each other:
    abcde f | abcf de | muc 3/4 3/4, b3 3/5 3/4, ceafe 17/35 17/35
nothing found:
     | ab cd | muc 0 0, b3 0 0, ceafe 0 0
nothing to find:
    ab cd |  | muc 0 0, b3 0 0, ceafe 0 0
neither:
     |  | muc 0 0, b3 0 0, ceafe 0 0
nothing in common:
    ab | cd | muc 0 0, b3 0 0, ceafe 0 0
"""


def clusters(text):
    return [[(ord(letter), ord(letter)) for letter in cluster] for cluster in text.split()]


def score(*documents):
    metric = CorefScores()
    for predicted, gold in documents:
        metric([predicted], [gold], [[]])
    return metric.get_metric()


def cases():
    for name, case in re.findall(r"^(\S.*):\n    (.*)\n", CASES, re.MULTILINE):
        predicted, gold, figures = case.split("|")
        yield pytest.param(predicted, gold, figures.split(","), id=name)


@pytest.mark.parametrize("predicted, gold, figures", cases())
def test_scores_are_those_of_the_reference_scorer_and_by_hand(predicted, gold, figures):
    scores = score((clusters(predicted), clusters(gold)))
    for figure in figures:
        measure, *expected = figure.split()
        precision, recall = map(Fraction, expected)
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
        found = [scores[f"{measure}_{kind}"] for kind in ("precision", "recall", "f1")]
        assert found == pytest.approx([float(number) for number in (precision, recall, f1)])


def count_three_documents():
    metric = CorefScores()
    metric([clusters("ab cde")], [clusters("abc de")], [clusters("abcx")[0]])
    metric([clusters("")], [clusters("fg")], [[]])
    metric([clusters("hi")], [clusters("")], [[(1, 1)]])
    return metric


def test_counts_are_summed_over_documents():
    scores = count_three_documents().get_metric()
    # Links: ab and de of a-b, c-d-e, h-i found; of a-b-c, d-e, f-g to be found.
    muc = (2 / 4, 2 / 4)
    # Mentions: 2 of 2 (ab), 1/3 (c) and 4/3 (de) of 7 found; 4/3, 1/3 and 2 of 7.
    b_cubed = ((2 + 5 / 3) / 7, (2 + 5 / 3) / 7)
    # Clusters: ab with abc and cde with de, 4/5 each, of 3 and 3.
    ceaf_entities = ((8 / 5) / 3, (8 / 5) / 3)
    means = [sum(pair) / 3 for pair in zip(muc, b_cubed, ceaf_entities)]
    for measure, (precision, recall) in zip(MEASURES, (muc, b_cubed, ceaf_entities)):
        assert scores[f"{measure}_precision"] == pytest.approx(precision)
        assert scores[f"{measure}_recall"] == pytest.approx(recall)
    assert [scores["coref_precision"], scores["coref_recall"]] == pytest.approx(means)
    assert scores["coref_f1"] == pytest.approx(means[0])
    assert scores["mention_recall"] == 3 / 7
    assert len(scores) == 13
