import pytest

from elmo_plugin.analysis.studies.study import Column, Study
from elmo_plugin.analysis.studies.tables import score_tables, summary_table
from tests.analysis.studies.scores import results, score, study


def lines_of(table):
    """Each line of a table as a dictionary without empty cells."""
    return [
        {name: text for name, text in zip(table.head, line) if text != ""} for line in table.lines
    ]


def test_each_column_is_a_line_with_the_scores_and_the_difference(tmp_path):
    made = study(("baseline", 90.0), ("ELMo", 92.22), rows=("NER", "SRL"))
    found = results(tmp_path / "r.json", made, [0.6, 0.62, 0.7, 0.72, 0.5])
    (table,) = score_tables(found)
    assert table.head == [
        "", "model", "paper", "score", "seeds", "difference",
        "error reduction", "error reduction, paper", "compared with",
    ]  # fmt: skip
    assert table.num_left == 2
    assert table.lines == [
        ["NER", "baseline", "90.0", "61.00 ± 1.41", "2", "", "", "", ""],
        ["", "ELMo", "92.22", "71.00 ± 1.41", "2", "+10.00", "25.6 %", "22.2 %", "baseline"],
        ["SRL", "baseline", "90.0", "50.00", "1", "", "", "", ""],
        ["", "ELMo", "92.22", "-", "", "", "", "", ""],
    ]


def test_fractions_have_lines_of_their_own_and_perplexities_are_no_percentages(tmp_path):
    made = study("before", "after", fractions=(0.01, 1), seeds=(1,), percent=False)
    found = results(tmp_path / "r.json", made, [200.0, 100.0, 50.0, 40.0])
    (table,) = score_tables(found)
    assert table.head == ["", "data", "model", "score", "seeds", "difference", "compared with"]
    assert table.lines == [
        ["NER", "1 %", "before", "200.00", "1", "", ""],
        ["", "", "after", "50.00", "1", "-150.00", "before"],
        ["", "100 %", "before", "100.00", "1", "", ""],
        ["", "", "after", "40.00", "1", "-60.00", "before"],
    ]


def test_shares_of_the_data_without_any_score_are_left_out(tmp_path):
    made = study("baseline", "ELMo", fractions=(0.01, 0.1, 1), seeds=(1,))
    found = results(tmp_path / "r.json", made, [None, None, None, None, 0.5])
    (table,) = score_tables(found)
    assert lines_of(table) == [
        {"": "NER", "data": "10 %", "model": "baseline", "score": "-"},
        {"model": "ELMo", "score": "50.00", "seeds": "1"},
    ]


def test_a_row_without_any_score_keeps_its_shares(tmp_path):
    made = study("baseline", fractions=(0.1, 1), seeds=(1,))
    (table,) = score_tables(results(tmp_path / "r.json", made, []))
    assert [(line["data"], line["score"]) for line in lines_of(table)] == [
        ("10 %", "-"),
        ("100 %", "-"),
    ]


def test_the_paper_s_scores_are_of_all_data(tmp_path):
    made = study(("baseline", 80.0), ("ELMo", 85.0), fractions=(0.1, 1), seeds=(1,))
    found = results(tmp_path / "r.json", made, [0.5, 0.6, 0.7, 0.8])
    (table,) = score_tables(found)
    papers = [(line.get("paper"), line.get("error reduction, paper")) for line in lines_of(table)]
    assert papers == [(None, None), (None, None), ("80.0", None), ("85.0", "25.0 %")]
    lines = lines_of(summary_table(found))
    assert [line.get("error reduction, paper") for line in lines] == [None, "25.0 %"]


def test_rows_that_are_not_compared_have_their_columns_side_by_side(tmp_path):
    made = study(
        ("before", 72.1), "after", rows=("a", "b", "c"), seeds=(1, 2), compare=False, percent=False
    )
    found = results(tmp_path / "r.json", made, [0.25, 0.75, 0.8, None, None, None, 0.5])
    (table,) = score_tables(found)
    assert table.head == ["", "before, paper", "before", "after", "seeds"]
    assert table.lines == [
        ["a", "72.1", "0.50 ± 0.35", "0.80", "2, 1"],
        ["b", "72.1", "", "0.50", "1"],
        ["c", "72.1", "", "", ""],
    ]


def test_any_name_of_a_column_is_a_column_of_its_own(tmp_path):
    made = study("data", "seeds", rows=("a",), seeds=(1,), compare=False, percent=False)
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.5, 0.8]))
    assert table.head == ["", "data", "seeds", "seeds"]
    assert table.lines == [["a", "0.50", "0.80", "1"]]


@pytest.mark.parametrize("settings", [{"percent": False}, {"lower_is_better": True}])
def test_only_scores_of_which_more_is_better_have_error_reductions(tmp_path, settings):
    made = study(("before", 72.1), ("after", 60.0), seeds=(1,), **settings)
    found = results(tmp_path / "r.json", made, [0.7, 0.6])
    for table in (*score_tables(found), summary_table(found)):
        assert not [name for name in table.head if "error" in name]


def test_a_baseline_without_errors_in_the_paper_has_no_error_reduction(tmp_path):
    made = study(("baseline", 100.0), ("ELMo", 100.0), seeds=(1,))
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.5, 0.6]))
    assert "error reduction" in table.head and "error reduction, paper" not in table.head


def test_rows_that_are_compared_and_others_have_tables_of_their_own(tmp_path):
    compared, other = (
        study("baseline", "ELMo", rows=(name,), seeds=(1,), compare=compare)
        for name, compare in (("NER", True), ("weights", False))
    )
    made = Study("A title", other.rows + compared.rows, other.runs + compared.runs)
    found = results(tmp_path / "r.json", made, [0.5] * len(made.runs))
    assert [table.lines[0][0] for table in score_tables(found)] == ["NER", "weights"]


def test_a_column_may_be_compared_with_another_one_than_the_baseline(tmp_path):
    against = Column("all", "f1", 96.0, against="last")
    made = study(("baseline", 90.0), ("last", 92.0), against, seeds=(1,))
    samples = [[0.5] * 1000, [0.6] * 1000, [0.7] * 1000]
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.5, 0.6, 0.7], samples))
    _, last, all_layers = lines_of(table)
    assert last["compared with"] == "baseline" and last["95 %"] == "+10.00 to +10.00"
    assert last["error reduction"] == last["error reduction, paper"] == "20.0 %"
    assert all_layers["compared with"] == "last" and all_layers["difference"] == "+10.00"
    assert (
        all_layers["error reduction"] == "25.0 %"
        and all_layers["error reduction, paper"] == "50.0 %"
    )


def test_the_paper_s_error_reduction_is_from_its_own_baseline(tmp_path):
    made = study("fixed", ("trained", 90.0), ("ELMo", 92.0), seeds=(1,), num_baselines=2)
    found = results(tmp_path / "r.json", made, [0.5, 0.4, 0.6])
    fixed, trained, elmo = lines_of(score_tables(found)[0])
    assert "difference" not in trained
    assert elmo["compared with"] == "fixed" and elmo["error reduction, paper"] == "20.0 %"


def test_intervals_are_in_the_unit_of_the_scores(tmp_path):
    made = study("baseline", "ELMo", seeds=(1,))
    samples = [[0.5] * 1000, [0.53] * 1000]
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.5, 0.53], samples))
    elmo = lines_of(table)[1]
    assert elmo["95 %"] == "+3.00 to +3.00" and elmo["error reduction"] == "6.0 %"


def with_histories(tmp_path, made, histories):
    found = results(tmp_path / "r.json", made, [])
    for run, history in zip(made.runs, histories):
        # The trainer may choose the best epoch by another metric than that of the row.
        best = {"f1": 0.0, "best_validation_f1": max(history) / 2}
        found.add({**score(run, 0.5), "training": best, "history": history})
    return found


def test_epochs_until_the_baseline_is_reached(tmp_path):
    made = study("baseline", "ELMo", seeds=(1, 2))
    histories = [[0.2, 0.5, 0.4], [0.3, 0.4, 0.7], [0.3, 0.6], [0.6, 0.5, 0.5]]
    (table,) = score_tables(with_histories(tmp_path, made, histories))
    # The goal is the mean of 0.5 and 0.7, which the first seed of the baseline does not reach.
    baseline, elmo = lines_of(table)
    assert baseline["best on dev"] == elmo["best on dev"] == "30.00"
    assert baseline["epochs to baseline"] == "3 (1 of 2)"
    assert elmo["epochs to baseline"] == "1.5"


def test_rows_of_which_lower_is_better_have_no_epochs_until_the_baseline(tmp_path):
    accuracy, loss = (
        study("baseline", "ELMo", rows=(name,), seeds=(1,), lower_is_better=name == "loss")
        for name in ("accuracy", "loss")
    )
    rows, runs = (*accuracy.rows, *loss.rows), (*accuracy.runs, *loss.runs)
    found = with_histories(tmp_path, Study("A title", rows, runs), [[0.4, 0.5]] * len(runs))
    epochs = ["epochs to baseline" in line for line in lines_of(score_tables(found)[0])]
    assert epochs == [True, True, False, False]


def test_a_summary_has_the_models_with_the_best_scores_on_dev(tmp_path):
    columns = [("fixed", 90.0), "trained", ("ELMo", 92.0), "ELMo, trained"]
    made = study(*columns, rows=("NER", "SRL"), seeds=(1,), num_baselines=2)
    found = results(tmp_path / "r.json", made, [])
    # Of each column: the score on test, and the best one on dev. SRL has no baseline yet.
    scores = [(0.6, 0.3), (0.5, 0.4), (0.9, 0.5), (0.7, 0.6), None, None, (0.9, 0.9)]
    for run, values in zip(made.runs, scores):
        if values is not None:
            test, dev = values
            training = {"f1": 0.0, "best_validation_f1": dev}
            found.add({**score(run, test), "training": training})
    table = summary_table(found)
    assert table.head == [
        "", "baseline", "score", "best model", "its score", "seeds", "difference",
        "error reduction", "error reduction, paper",
    ]  # fmt: skip
    assert table.lines == [
        ["NER", "trained", "50.00", "ELMo, trained", "70.00", "1, 1", "+20.00", "40.0 %", "20.0 %"]
    ]


def test_a_summary_leaves_out_what_is_not_compared_with_the_baseline(tmp_path):
    made = study("last", Column("all", "f1", None, against="last"), seeds=(1,))
    assert summary_table(results(tmp_path / "r.json", made, [0.5, 0.6])).lines == []


def test_without_scores_on_dev_no_model_is_called_the_best(tmp_path):
    made = study("baseline", "ELMo", "wide", seeds=(1,))
    found = results(tmp_path / "r.json", made, [0.5, 0.6])
    # The only one that was trained.
    assert [line[3] for line in summary_table(found).lines] == ["ELMo"]
    found = results(tmp_path / "r.json", made, [0.5, 0.6, 0.7])
    assert summary_table(found).lines == []


def test_a_baseline_that_was_not_trained_is_not_the_best_one(tmp_path):
    made = study("fixed", "trained", "ELMo", seeds=(1,), num_baselines=2)
    (table,) = score_tables(results(tmp_path / "r.json", made, [None, 0.5, 0.6]))
    assert lines_of(table)[2]["compared with"] == "trained"
