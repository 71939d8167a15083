"""What the metrics of all tasks promise, and what those of spans share."""

import pytest

from elmo_plugin.tasks.coref import CorefScores
from elmo_plugin.tasks.metrics import SpanF1
from elmo_plugin.tasks.ner import EntityF1
from elmo_plugin.tasks.squad import SquadScores
from elmo_plugin.tasks.srl import SrlSpanF1
from tests.processes import in_two_processes


def tags(*sentences):
    return [sentence.split() for sentence in sentences]


# Of each kind two batches, with different labels.
BATCHES = {
    EntityF1: [
        (tags("B-PER O B-LOC O"), tags("B-PER O B-LOC I-LOC")),
        (tags("O B-ORG", "O O"), tags("O B-LOC", "O B-LOC")),
    ],
    SrlSpanF1: [
        (tags("B-A0 B-V B-A1 O"), tags("B-A0 B-V B-A1 I-A1")),
        (tags("B-V B-A2", "B-V O"), tags("B-V B-A2", "B-V B-A1")),
    ],
    SquadScores: [
        (["six", "no", "red"], [["six"], ["yes"], ["blue"]]),
        (["the red"], [["red wine", "wine"]]),
    ],
    CorefScores: [
        ([[[(0, 0), (2, 3)], [(5, 5), (6, 6), (7, 7)]]], [[[(0, 0), (2, 3), (5, 5)]]], [[(0, 0)]]),
        ([[], [[(1, 1), (2, 2)]]], [[[(1, 1), (2, 2)]], []], [[], [(1, 1)]]),
    ],
}


def of_all(kind):
    metric = kind()
    for batch in BATCHES[kind]:
        metric(*batch)
    return metric


def score_half(rank: int) -> None:
    for kind, batches in BATCHES.items():
        metric, whole = kind(), of_all(kind)
        metric(*batches[rank])
        expected = whole.scores(whole._sums)
        # Also when it is asked again.
        for _ in range(2):
            assert metric.get_metric() == pytest.approx(expected) and any(expected.values())
        if isinstance(metric, SpanF1):
            assert metric.rows(metric.sums()) == whole.rows(whole._sums)


def test_processes_report_the_scores_of_all_instances_and_labels(tmp_path):
    in_two_processes(score_half, tmp_path)


@pytest.mark.parametrize("kind", BATCHES)
def test_reset_forgets_everything(kind):
    metric = of_all(kind)
    assert metric.get_metric() == metric.get_metric(reset=True) != {}
    assert metric.get_metric() == {}


@pytest.mark.parametrize("kind", [EntityF1, SrlSpanF1, SquadScores])
def test_other_numbers_of_predicted_and_gold_instances_are_refused(kind):
    predicted, gold = BATCHES[kind][0]
    with pytest.raises(ValueError, match="shorter"):
        kind()(predicted, gold[1:])


class Example(SpanF1):
    separate = ("V",)
    columns = {"missed": lambda row: row.gold - row.true_positives}


def counted():
    metric = Example()
    metric.add([("A", 1), ("A", 2), ("V", 0)], [("A", 1), ("B", 2), ("V", 0)])
    metric.add([], [("B", 3)])
    return metric


def test_rows_have_true_positives_predicted_and_gold_spans_and_separate_labels_come_last():
    metric = counted()
    rows = metric.rows(metric.sums())
    assert rows == {"overall": (1, 2, 3), "A": (1, 2, 1), "B": (0, 0, 2), "V": (1, 1, 1)}
    assert list(rows) == ["overall", "A", "B", "V"]
    lines = [line.split() for line in metric.table().splitlines()]
    assert lines[0] == ["missed", "prec.", "rec.", "F1"]
    assert lines[1] == ["Overall", "2", "50.00", "33.33", "40.00"]
    assert lines[4] == ["V", "0", "100.00", "100.00", "100.00"]


def test_scores_follow_from_the_counts():
    scores = counted().get_metric()
    assert scores["precision-overall"] == 1 / 2 and scores["recall-overall"] == 1 / 3
    assert scores["f1-measure-overall"] == 0.4
    assert scores["precision-B"] == scores["f1-measure-B"] == 0.0
    assert scores["f1-measure-V"] == 1.0


def test_a_label_called_overall_does_not_replace_the_sum():
    metric = Example()
    metric.add([("overall", 1)], [("overall", 1), ("A", 2)])
    assert metric.rows(metric.sums()) == {"overall": (1, 1, 2), "A": (0, 0, 1)}
