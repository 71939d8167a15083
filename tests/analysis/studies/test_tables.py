"""What the tables of the kept results, see `test_shipped_report.py`, do not show."""

import pytest

from elmo_plugin.analysis.studies.comparison import shares
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
    made = study(("before", 9.0), "after", fractions=(0.01, 0.1, 1), seeds=(1,), percent=False)
    (table,) = score_tables(results(tmp_path / "r.json", made, [200.0, None, 50.0, 100.0]))
    # Shares without any score are left out; the paper's scores are of all data.
    assert table.head == ["", "data", "model", "paper", "score", "seeds", "difference",
                          "compared with"]  # fmt: skip
    assert table.lines == [
        ["NER", "1 %", "before", "", "200.00", "1", "", ""],
        ["", "", "after", "", "100.00", "1", "-100.00", "before"],
        ["", "100 %", "before", "9.0", "50.00", "1", "", ""],
        ["", "", "after", "", "-", "", "", ""],
    ]
    # Without any score, all shares are there.
    (table,) = score_tables(results(tmp_path / "n.json", made, []))
    assert [line.get("data") for line in lines_of(table)[::2]] == ["1 %", "10 %", "100 %"]


def test_rows_that_are_not_compared_have_their_columns_side_by_side(tmp_path):
    columns = (("before", 72.1), "data", "seeds")
    other = study(*columns, rows=("a", "b", "c"), compare=False, percent=False)
    compared = study("baseline", "ELMo", seeds=(1,))
    made = Study("A title", other.rows + compared.rows, other.runs + compared.runs)
    values = [0.25, 0.75, 0.8, None, 0.1, None, None, None, 0.5]
    first, second = score_tables(results(tmp_path / "r.json", made, values))
    assert first.lines[0][0] == "NER"
    assert second.head == ["", "before, paper", "before", "data", "seeds", "seeds"]
    assert second.lines == [
        ["a", "72.1", "0.50 ± 0.35", "0.80", "0.10", "2, 1, 1"],
        ["b", "72.1", "", "0.50", "", "1"],
        ["c", "72.1", "", "", "", ""],
    ]


@pytest.mark.parametrize(
    "papers, settings, heads",
    [
        ((72.1, 60.0), {"percent": False}, []),
        ((72.1, 60.0), {"lower_is_better": True}, []),
        ((100.0, 100.0), {}, ["error reduction"]),
        ((72.1, 60.0), {}, ["error reduction", "error reduction, paper"]),
    ],
)
def test_only_scores_with_errors_of_which_more_is_better_have_reductions(
    tmp_path, papers, settings, heads
):
    made = study(*zip(("before", "after"), papers), seeds=(1,), **settings)
    (table,) = score_tables(results(tmp_path / "r.json", made, [0.7, 0.6]))
    assert [name for name in table.head if "error" in name] == heads


def test_a_column_may_be_compared_with_another_one_than_the_baseline(tmp_path):
    against = Column("all", "f1", 96.0, against="last")
    made = study(("baseline", 90.0), ("last", 92.0), against, seeds=(1,))
    samples = [[0.5] * 1000, [0.6] * 1000, [0.7] * 1000]
    found = results(tmp_path / "r.json", made, [0.5, 0.6, 0.7], samples)
    _, last, all_layers = lines_of(score_tables(found)[0])
    assert last["compared with"] == "baseline" and last["95 %"] == "+10.00 to +10.00"
    assert last["error reduction"] == last["error reduction, paper"] == "20.0 %"
    assert all_layers["compared with"] == "last" and all_layers["difference"] == "+10.00"
    reductions = [all_layers[f"error reduction{name}"] for name in ("", ", paper")]
    assert reductions == ["25.0 %", "50.0 %"]
    # A summary has only what is compared with the baseline.
    (line,) = lines_of(summary_table(shares(found, *found.rows)))
    assert line["best model"] == "last"


def test_epochs_until_the_baseline_is_reached(tmp_path):
    higher, lower = (
        study("baseline", "ELMo", rows=(name,), lower_is_better=name == "loss")
        for name in ("accuracy", "loss")
    )
    made = Study("A title", higher.rows + lower.rows, higher.runs + lower.runs)
    found = results(tmp_path / "r.json", made, [])
    histories = [[0.2, 0.5, 0.4], [0.3, 0.4, 0.7], [0.3, 0.6], [0.6, 0.5, 0.5]]
    for run, history in zip(made.runs, histories * 2):
        # The trainer may choose the best epoch by another metric than that of the row.
        best = {"f1": 0.0, "best_validation_f1": max(history) / 2}
        found.add({**score(run, 0.5), "training": best, "history": history})
    lines = lines_of(score_tables(found)[0])
    assert [line["best on dev"] for line in lines] == ["30.00"] * 4
    # The goal is the mean of 0.5 and 0.7, which the first seed of the baseline does not reach.
    epochs = [line.get("epochs to baseline") for line in lines]
    assert epochs == ["3 (1 of 2)", "1.5", None, None]


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
    table = summary_table(shares(found, *found.rows))
    assert table.head == [
        "", "baseline", "score", "best model", "its score", "seeds", "difference",
        "error reduction", "error reduction, paper",
    ]  # fmt: skip
    assert table.lines == [
        ["NER", "trained", "50.00", "ELMo, trained", "70.00", "1, 1", "+20.00", "40.0 %", "20.0 %"]
    ]


def test_a_summary_has_p_values_that_are_corrected_for_its_lines(tmp_path):
    made = study("baseline", "ELMo", rows=("NER", "SRL", "SST"), seeds=(1,))
    # Of 1,000 samples of the differences, 1, 20 and 20 are below zero, so p is 0.002 and 0.04.
    samples = [[0.5 if number >= below else 0.7 for number in range(1000)] for below in (1, 20, 20)]
    pairs = [each for of_row in samples for each in (of_row, [0.6] * 1000)]
    found = results(tmp_path / "r.json", made, [0.5, 0.6] * 3, pairs)
    lines = lines_of(summary_table(shares(found, *found.rows)))
    assert [(line[""], line["p"]) for line in lines] == [
        ("NER", "0.006"), ("SRL", "0.080"), ("SST", "0.080"),
    ]  # fmt: skip
    (line,) = lines_of(summary_table(shares(found, found.rows[0])))
    assert line["p"] == "0.002"
    assert (
        "p" not in summary_table(shares(results(tmp_path / "x", made, [0.5] * 6), *made.rows)).head
    )


@pytest.mark.parametrize("values, best", [([0.5, 0.6], ["ELMo"]), ([0.5, 0.6, 0.7], [])])
def test_without_scores_on_dev_no_model_is_called_the_best_of_several(tmp_path, values, best):
    found = results(tmp_path / "r", study("baseline", "ELMo", "wide", seeds=(1,)), values)
    assert [line[3] for line in summary_table(shares(found, *found.rows)).lines] == best
