from elmo_plugin.metrics.label_counts import LabelCounts


def counted():
    counts = LabelCounts(apart=["V"])
    counts.add([("A", 1), ("A", 2), ("V", 0)], [("A", 1), ("B", 2), ("V", 0)])
    counts.add([], [("B", 3)])
    return counts


def test_rows_have_right_found_and_gold_things_and_labels_apart_come_last():
    rows = counted().rows()
    assert rows == {"overall": (1, 2, 3), "A": (1, 2, 1), "B": (0, 0, 2), "V": (1, 1, 1)}
    assert list(rows) == ["overall", "A", "B", "V"]


def test_scores_follow_from_the_counts():
    scores = counted().scores()
    assert scores["precision-overall"] == 1 / 2 and scores["recall-overall"] == 1 / 3
    assert scores["f1-measure-overall"] == 0.4
    assert scores["precision-B"] == scores["f1-measure-B"] == 0.0
    assert scores["f1-measure-V"] == 1.0


def test_a_table_has_the_columns_asked_for():
    columns = {"missed": lambda correct, found, gold: gold - correct}
    lines = [line.split() for line in counted().table(columns)]
    assert lines[0] == ["missed", "prec.", "rec.", "F1"]
    assert lines[1] == ["Overall", "2", "50.00", "33.33", "40.00"]
    assert lines[4] == ["V", "0", "100.00", "100.00", "100.00"]


def test_after_a_reset_nothing_is_counted():
    counts = counted()
    counts.reset()
    assert counts.rows() == {"overall": (0, 0, 0)}
