"""The counts expected here are those that `srl-eval.pl` prints for the same propositions."""

import pytest

from elmo_plugin.tasks.srl.metric import SrlSpanF1, arguments
from tests.tasks.span_tables import read_table, span_cases

# Rule, predicted tags, gold tags, and (correct, excess, missed) per label.
CASES = """
a span must be right at both ends:
    B-A0 I-A0 B-V B-A1 O | B-A0 I-A0 B-V B-A1 I-A1 | overall 1 1 1, A0 1 0 0, A1 0 1 1, V 1 0 0
a right span with a wrong label is one excess and one missed argument:
    B-A0 B-V B-A1 I-A1 | B-A0 B-V B-A2 I-A2 | overall 1 1 1, A0 1 0 0, A1 0 1 0, A2 0 0 1, V 1 0 0
a discontinuous argument is one argument:
    B-A1 B-V B-C-A1 I-C-A1 O B-C-A1 | B-A1 B-V B-C-A1 I-C-A1 O B-C-A1
    | overall 1 0 0, A1 1 0 0, V 1 0 0
a discontinuous argument found in part is wrong:
    B-A1 B-V B-C-A1 O B-A0 | B-A1 B-V B-C-A1 I-C-A1 B-A0
    | overall 1 1 1, A1 0 1 1, A0 1 0 0, V 1 0 0
adjacent pieces are not the undivided span:
    B-A1 B-C-A1 B-V | B-A1 I-A1 B-V | overall 0 1 1, A1 0 1 1, V 1 0 0
other pieces within the same first and last token are wrong:
    B-A1 I-A1 B-V B-C-A1 | B-A1 B-C-A1 B-V B-C-A1 | overall 0 1 1, A1 0 1 1, V 1 0 0
a continuation of nothing is an argument:
    B-C-A1 B-V O | B-A1 B-V B-A0 | overall 1 0 1, A1 1 0 0, A0 0 0 1, V 1 0 0
a continuation of nothing can be continued:
    B-C-A1 B-V B-C-A1 O | B-A1 B-V B-C-A1 O | overall 1 0 0, A1 1 0 0, V 1 0 0
a continuation belongs to the nearest argument on its left:
    B-A1 O B-A1 B-V B-C-A1 | B-A1 O B-A1 B-V O | overall 1 1 1, A1 1 1 1, V 1 0 0
a continuation does not belong to what follows it:
    B-C-A1 B-V B-A1 | B-A1 B-V B-C-A1 | overall 0 2 1, A1 0 2 1, V 1 0 0
other arguments in between do not end a continued one:
    B-A0 B-V B-A1 B-C-A0 B-C-A1 | B-A0 B-V B-A1 B-C-A0 B-C-A1
    | overall 2 0 0, A0 1 0 0, A1 1 0 0, V 1 0 0
the same label twice is two arguments:
    B-A1 B-A1 B-V B-A1 | B-A1 I-A1 B-V B-A1 | overall 1 2 1, A1 1 2 1, V 1 0 0
a reference is a label of its own:
    B-A0 B-R-A0 B-V B-C-R-A0 | B-A0 B-A0 B-V B-C-A0 | overall 1 1 1, A0 1 0 1, R-A0 0 1 0, V 1 0 0
a reference takes no continuation of its argument:
    B-R-A0 B-V B-C-A0 | B-R-A0 B-V B-A0 | overall 2 0 0, A0 1 0 0, R-A0 1 0 0, V 1 0 0
a verb continued is a verb, whole or wrong, and not in the overall score:
    B-V O B-C-V B-A1 | B-V O O B-A1 | overall 1 0 0, A1 1 0 0, V 0 1 1
a twofold continuation continues what is left of its label:
    B-C-C-A1 B-A1 B-C-C-A1 B-V | B-A0 B-A1 B-A0 B-V
    | overall 1 1 2, A1 1 0 0, A0 0 0 2, C-A1 0 1 0, V 1 0 0
an inside without its beginning opens a span:
    I-A0 I-A0 B-V B-A1 I-A2 O I-A2 | B-A0 I-A0 B-V B-A1 B-A2 O B-A2
    | overall 4 0 0, A0 1 0 0, A1 1 0 0, A2 2 0 0, V 1 0 0
nothing found:
    O O | B-V B-A0 | overall 0 0 1, A0 0 0 1, V 0 0 1
nothing to find:
    B-A0 O | O O | overall 0 1 0, A0 0 1 0
no tokens:
     |  | overall 0 0 0
"""


@pytest.mark.parametrize("predicted, gold, counts", span_cases(CASES))
def test_counts_as_the_official_scorer(predicted, gold, counts):
    metric = SrlSpanF1()
    metric([predicted], [gold])
    assert read_table(metric) == counts


def test_arguments_are_read_from_left_to_right():
    tags = "B-A1 I-A1 O B-V I-A0 B-C-A1 B-A0".split()
    assert arguments(tags) == [
        ("A1", ((0, 1), (5, 5))),
        ("V", ((3, 3),)),
        ("A0", ((4, 4),)),
        ("A0", ((6, 6),)),
    ]
