import random
from typing import Iterable, List, Tuple

import pytest
from seqeval.metrics import classification_report

from elmo_plugin.tasks.ner.metric import EntityF1, TagAccuracy
from tests.tasks.span_tables import read_table, span_cases

TYPES = ("PER", "LOC")

# Rule, predicted tags, gold tags, and (correct, found, gold) per type; counted by hand.
CASES = """
an entity must be right at both ends:
    B-PER I-PER O B-LOC O | B-PER I-PER I-PER B-LOC O | overall 1 2 2, PER 0 1 1, LOC 1 1 1
a wrong type is found too much and found too little:
    B-ORG O | B-LOC O | overall 0 1 1, ORG 0 1 0, LOC 0 0 1
an inside after nothing is an entity:
    O I-PER I-PER O | O B-PER I-PER O | overall 1 1 1, PER 1 1 1
a type that changes within is two entities:
    B-PER I-LOC I-LOC | B-PER B-LOC I-LOC | overall 2 2 2, PER 1 1 1, LOC 1 1 1
an end without a beginning is an entity:
    O E-PER O | O S-PER O | overall 1 1 1, PER 1 1 1
neighbours of one type are two entities, their union is none:
    B-PER I-PER | I-PER B-PER | overall 0 1 2, PER 0 1 2
the schemes of the two sides need not be one:
    B-PER L-PER U-PER O | I-PER I-PER B-PER O | overall 2 2 2, PER 2 2 2
nothing found:
    O O | B-PER O | overall 0 0 1, PER 0 0 1
nothing to find:
    B-PER O | O O | overall 0 1 0, PER 0 1 0
no tokens:
     |  | overall 0 0 0
"""


@pytest.mark.parametrize("predicted, gold, counts", span_cases(CASES))
def test_counts_by_hand(predicted, gold, counts):
    metric = EntityF1()
    metric([predicted], [gold])
    assert read_table(metric) == counts


def random_tags(prefixes: str, number: int, seed: int) -> List[List[str]]:
    choice = random.Random(seed).choice
    tags = [
        prefix if prefix == "O" else f"{prefix}-{kind}" for prefix in prefixes for kind in TYPES
    ]
    return [[choice(tags) for _ in range(length)] for length in [1, 2, 3, 5, 9] * number]


@pytest.mark.parametrize("prefixes", ["BIO", "BIESO", "IEO", "IO"])
def test_agrees_with_seqeval_on_any_sequence(prefixes):
    """
    seqeval goes by the rules of conlleval, which it extends to S and E. Its accuracy compares tags
    as they are spelled, so that it is not compared here.
    """
    predicted, gold = random_tags(prefixes, 40, seed=1), random_tags(prefixes, 40, seed=2)
    metric = EntityF1()
    metric(predicted, gold)
    scores = metric.get_metric()
    report = classification_report(gold, predicted, output_dict=True, zero_division=0)
    for ours, theirs in (("PER", "PER"), ("LOC", "LOC"), ("overall", "micro avg")):
        assert scores[f"precision-{ours}"] == pytest.approx(report[theirs]["precision"])
        assert scores[f"recall-{ours}"] == pytest.approx(report[theirs]["recall"])
        assert scores[f"f1-measure-{ours}"] == pytest.approx(report[theirs]["f1-score"])


def conlleval(lines: Iterable[str]) -> Tuple[int, int, int, float]:
    """Correct, found and gold phrases and the accuracy, counted line by line as in the script."""
    correct = found = gold = right = total = 0
    both_open = False
    last = [("O", ""), ("O", "")]
    for line in lines:
        cells = line.split() or ["", "O", "O"]
        now = [tuple(cell.split("-", 1)) if cell != "O" else ("O", "") for cell in cells[-2:]]
        ends, starts = [], []
        for (tag_before, type_before), (tag, kind) in zip(last, now):
            other = type_before != kind
            ends.append(tag_before != "O" and (tag in "BO" or other))
            starts.append(tag != "O" and (tag == "B" or tag_before == "O" or other))
        if both_open and any(ends):
            correct += all(ends) and last[0][1] == last[1][1]
            both_open = False
        gold, found = gold + starts[0], found + starts[1]
        if all(starts) and now[0][1] == now[1][1]:
            both_open = True
        if cells[0]:
            total, right = total + 1, right + (now[0] == now[1])
        last = now
    return correct, found, gold, right / total


def count_two_batches() -> EntityF1:
    metric = EntityF1()
    metric(["B-PER O B-LOC O".split()], ["B-PER O B-LOC I-LOC".split()])
    metric(["O B-LOC".split(), "O O".split()], ["O B-LOC".split(), "O B-LOC".split()])
    return metric


def test_accuracy_does_not_depend_on_the_scheme():
    metric = EntityF1()
    metric([["U-PER", "B-LOC", "L-LOC", "O"]], [["I-PER", "I-LOC", "I-LOC", "O"]])
    assert metric.get_metric()["accuracy"] == 1.0


def test_table_has_the_overall_row_first_and_the_accuracy_last():
    assert count_two_batches().table().splitlines() == [
        "            correct   found    gold   prec.    rec.      F1",
        "   Overall        2       3       4   66.67   50.00   57.14",
        "       LOC        1       2       3   50.00   33.33   40.00",
        "       PER        1       1       1  100.00  100.00  100.00",
        "Accuracy 75.00 over 8 tokens.",
    ]


def test_accuracy_of_plain_tags_is_that_of_the_tokens():
    metric = TagAccuracy()
    assert metric.get_metric() == {}
    metric([["A", "B", "B"], []], [["A", "A", "B"], []])
    metric([["I-A"]], [["B-A"]])
    assert metric.get_metric(reset=True) == {"accuracy": 0.5}
    assert metric.get_metric() == {}
