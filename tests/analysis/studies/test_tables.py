from elmo_plugin.analysis.studies.study import Column, Study
from elmo_plugin.analysis.studies.tables import epoch_table, score_tables
from tests.analysis.studies.scores import results, score, study


def test_rows_of_the_same_columns_share_a_table(tmp_path):
    made = study(("baseline", 90.15), ("ELMo", 92.22), rows=("NER", "SRL"))
    found = results(tmp_path / "r.json", made, [0.6, 0.62, 0.7, 0.72, 0.5])
    (table,) = score_tables(found)
    assert table.head == [
        "", "baseline, paper", "baseline", "ELMo, paper", "ELMo", "difference", "fewer errors"
    ]  # fmt: skip
    assert table.lines == [
        ["NER", "90.2", "61.00 ± 1.41 (2)", "92.2", "71.00 ± 1.41 (2)", "+10.00", "25.6 %"],
        ["SRL", "90.2", "50.00 (1 seed)", "92.2", "-", "", ""],
    ]


def test_fractions_have_lines_of_their_own_and_perplexities_are_no_percentages(tmp_path):
    made = study("before", "after", fractions=(0.01, 1), seeds=(1,), percent=False)
    found = results(tmp_path / "r.json", made, [200.0, 100.0, 50.0, 40.0])
    (table,) = score_tables(found)
    assert table.head == ["", "data", "before", "after", "difference"]
    assert table.lines == [
        ["NER", "1 %", "200.00 (1 seed)", "50.00 (1 seed)", "-150.00"],
        ["NER", "100 %", "100.00 (1 seed)", "40.00 (1 seed)", "-60.00"],
    ]


def test_lines_without_any_score_are_left_out(tmp_path):
    made = study("baseline", "ELMo", fractions=(0.01, 0.1, 1), seeds=(1,))
    found = results(tmp_path / "r.json", made, [None, None, None, None, 0.5])
    (table,) = score_tables(found)
    assert table.lines == [["NER", "10 %", "-", "50.00 (1 seed)"]]


def test_rows_that_are_not_compared_have_scores_only(tmp_path):
    made = study("layer 0", "layer 1", seeds=(1,), compare=False, percent=False)
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.2, 0.8]))
    assert table.head == ["", "layer 0", "layer 1"]


def test_a_column_may_be_compared_with_another_one_than_the_baseline(tmp_path):
    made = study("baseline", "last", Column("all", "f1", None, against="last"), seeds=(1,))
    samples = [[0.5] * 1000, [0.6] * 1000, [0.7] * 1000]
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.5, 0.6, 0.7], samples))
    assert table.head[3:] == [
        "difference", "95 %", "fewer errors",
        "all", "difference from last", "95 %", "fewer errors",
    ]  # fmt: skip
    assert table.lines[0][3:] == [
        "+10.00", "+10.00 to +10.00", "20.0 %",
        "70.00 (1 seed)", "+10.00", "+10.00 to +10.00", "25.0 %",
    ]  # fmt: skip


def test_rows_that_compare_other_columns_have_tables_of_their_own(tmp_path):
    compared, other = (
        study("baseline", "last", Column("all", "f1", None, against=against), rows=(name,))
        for name, against in (("NER", "last"), ("SRL", None))
    )
    made = Study("A title", compared.rows + other.rows, compared.runs + other.runs)
    found = results(tmp_path / "r.json", made, [0.5] * len(made.runs))
    assert [table.lines[0][0] for table in score_tables(found)] == ["NER", "SRL"]


def test_intervals_are_in_the_unit_of_the_scores(tmp_path):
    made = study("baseline", "ELMo", seeds=(1,))
    samples = [[0.5] * 1000, [0.53] * 1000]
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.5, 0.53], samples))
    assert table.lines[0][-2:] == ["+3.00 to +3.00", "6.0 %"]


def test_epochs_until_the_baseline_is_reached(tmp_path):
    made = study("baseline", "ELMo", seeds=(1, 2))
    found = results(tmp_path / "r.json", made, [0.5, 0.5, 0.7, 0.7])
    assert epoch_table(found) is None
    histories = [[0.2, 0.5, 0.4], [0.3, 0.4, 0.7], [0.3, 0.6], [0.6, 0.5, 0.5]]
    for run, history in zip(made.runs, histories):
        found.add({**score(run, 0.5), "history": history})
    # The goal is the mean of 0.5 and 0.7, which the first seed of the baseline does not reach.
    (line,) = epoch_table(found).lines
    expected = ["NER", "100 %", "baseline", "60.00", "baseline 3 (1 of 2 never); ELMo 1.5"]
    assert line == expected


def test_rows_of_which_lower_is_better_have_no_epochs_until_the_baseline(tmp_path):
    accuracy, loss = (
        study("baseline", "ELMo", rows=(name,), seeds=(1,), lower_is_better=name == "loss")
        for name in ("accuracy", "loss")
    )
    rows, runs = (*accuracy.rows, *loss.rows), (*accuracy.runs, *loss.runs)
    found = results(tmp_path / "r.json", Study("A title", rows, runs), [])
    for run in runs:
        found.add({**score(run, 0.5), "history": [0.4, 0.5]})
    assert [line[0] for line in epoch_table(found).lines] == ["accuracy"]
