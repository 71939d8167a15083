from elmo_plugin.tasks.metrics import SpanF1


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


def test_a_table_has_the_columns_of_the_metric():
    lines = [line.split() for line in counted().table().splitlines()]
    assert lines[0] == ["missed", "prec.", "rec.", "F1"]
    assert lines[1] == ["Overall", "2", "50.00", "33.33", "40.00"]
    assert lines[4] == ["V", "0", "100.00", "100.00", "100.00"]


def test_after_a_reset_all_counts_are_zero():
    metric = counted()
    metric.reset()
    assert metric.rows(metric.sums()) == {"overall": (0, 0, 0)}
