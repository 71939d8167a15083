import math
from dataclasses import replace

import numpy
import pytest
import scipy.stats

from elmo_plugin.analysis.studies.comparison import holm, shares
from elmo_plugin.analysis.studies.findings import findings
from elmo_plugin.analysis.studies.plots import figures
from elmo_plugin.analysis.studies.study import Column
from elmo_plugin.analysis.studies.tables import score_tables, summary_table
from tests.analysis.studies.scores import results, score, study


def difference(found, row, number):
    """Of a column from the baseline, in the only share."""
    (share,) = shares(found, row)
    return share.difference(row.columns[number], share)


def test_a_cell_is_mean_deviation_and_interval_over_seeds(tmp_path):
    made = study("baseline", "ELMo", seeds=(1, 2, 3))
    samples = [[number / 1000 for number in range(1001)], [0.6] * 1001, None, [0.8] * 1001]
    found = results(tmp_path / "r.json", made, [0.5, 0.6, 0.7, 0.8], samples)
    (share,) = shares(found, made.rows[0])
    first, second = share.cells["baseline"], share.cells["ELMo"]
    assert (first.mean, first.deviation) == (pytest.approx(0.6), pytest.approx(0.1))
    assert (second.mean, second.deviation, second.values) == (0.8, None, [0.8])
    assert first.interval is None and second.interval == pytest.approx((0.8, 0.8))
    assert difference(found, made.rows[0], 1).interval is None
    # A metric of the training, although a file was evaluated.
    column = replace(made.rows[0].columns[1], metric="training_weight")
    found.scores("NER", "ELMo")[0]["training"]["training_weight"] = 0.25
    (share,) = shares(found, replace(made.rows[0], columns=(column,)))
    assert share.cells["ELMo"].mean == 0.25


@pytest.mark.parametrize(
    "before, after, rel",
    [
        ([0.5, 0.5, 0.5, 0.51], [0.4, 0.6, 0.5, 0.7], 0.02),
        ([0.5, 0.6, None, None], [0.7, 0.75, 0.8, 0.9], 0.03),
        ([0.5, 0.6, 0.7], [0.7, 0.71, 0.72], 0.03),
    ],
)
def test_the_interval_of_a_difference_is_that_of_welch(tmp_path, before, after, rel):
    made = study("baseline", "ELMo", seeds=range(len(before)))
    values = [*before, *after]
    found = results(tmp_path / "r.json", made, values, [[value] * 1000 for value in values])
    change = difference(found, made.rows[0], 1)
    welch = scipy.stats.ttest_ind(after, [v for v in before if v is not None], equal_var=False)
    low, high = welch.confidence_interval(0.95)
    assert change.mean == pytest.approx((low + high) / 2)
    assert change.interval == pytest.approx((low, high), rel=rel)
    assert change.p_value == pytest.approx(welch.pvalue, rel=rel)
    assert difference(found, made.rows[0], 1) == change


def test_a_column_with_one_seed_borrows_the_variance_of_the_other(tmp_path):
    made = study("baseline", "ELMo", seeds=(1, 2, 3))
    values = [0.5, None, None, 0.55, 0.6, 0.65]
    found = results(tmp_path / "r.json", made, values, [[value] * 1000 for value in values])
    # The deviation is 0.05, and Student's t with 2 degrees is 4.303.
    half = 4.303 * 0.05 * (1 + 1 / 3) ** 0.5
    change = difference(found, made.rows[0], 1)
    assert change.interval == pytest.approx((0.1 - half, 0.1 + half), rel=0.03)


def test_without_variance_a_difference_is_certain(tmp_path):
    made = study("baseline", "ELMo", "same", seeds=(1,))
    found = results(tmp_path / "r.json", made, [0.5, 0.6, 0.5], [[0.5], [0.6], [0.5]])
    assert [difference(found, made.rows[0], number).p_value for number in (1, 2)] == [0, 1]


def test_p_values_are_corrected_by_the_rule_of_holm():
    p_values = numpy.random.default_rng(0).uniform(0, 0.3, 8).tolist()
    assert p_values != sorted(p_values)
    # A hypothesis is rejected at a level if it and all smaller ones pass theirs.
    for level in (0.01, 0.05, 0.3, 0.9):
        rejected = set()
        for rank, p_value in enumerate(sorted(p_values)):
            if p_value > level / (8 - rank):
                break
            rejected.add(p_value)
        assert {p for p, c in zip(p_values, holm(p_values)) if c <= level} == rejected
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.9, 0.8]) == [1, 1]


def test_the_interval_of_a_cell_has_the_variance_of_seeds(tmp_path):
    made = study("baseline", seeds=(1, 2, 3, 4))
    values = [0.4, 0.6, 0.5, 0.7]
    found = results(tmp_path / "r.json", made, values, [[value] * 1000 for value in values])
    # As above: the standard error of the mean. Student's t with 3 degrees has 3.182.
    expected = (0.55 - 3.182 * 0.0645, 0.55 + 3.182 * 0.0645)
    (share,) = shares(found, made.rows[0])
    assert share.cells["baseline"].interval == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("worst", [math.inf, math.nan])
@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_a_training_that_diverged_spoils_no_other_column(tmp_path, worst, seeds):
    made = study("a", "b", "c", seeds=seeds, num_baselines=2)
    values = [worst if run.column == "a" and run.seed == 1 else 0.5 for run in made.runs]
    found = results(tmp_path / "r.json", made, values, [[value, value] for value in values])
    for name in "abc":
        for each in found.scores("NER", name):
            each["training"]["best_validation_f1"] = each["evaluation"]["f1"]
    row = made.rows[0]
    (share,) = shares(found, row)
    bad, good = share.cells["a"], share.cells["b"]
    assert not math.isfinite(bad.mean) and (bad.deviation, bad.interval) == (None, None)
    assert good.mean == 0.5 and good.interval == (0.5, 0.5)
    assert difference(found, row, 2) is not None
    if math.isnan(worst):
        assert share.baseline == "b" and difference(found, row, 2).interval == (0, 0)
    assert all(score_tables(found)) and summary_table(shares(found, *found.rows))
    assert all(figure.svg for figure in figures(found, findings(found, {})))


def test_the_samples_of_one_seed_are_compared_in_pairs(tmp_path):
    made = study("baseline", "ELMo", seeds=(1,))
    # The instances differ much, the two models little: only pairs can tell.
    base = numpy.random.default_rng(3).normal(0.5, 0.1, 1000)
    gain = numpy.random.default_rng(4).normal(0.02, 0.005, 1000)
    found = results(tmp_path / "r.json", made, [0.5, 0.52], [base.tolist(), (base + gain).tolist()])
    change = difference(found, made.rows[0], 1)
    assert change.interval == pytest.approx((0.0102, 0.0298), abs=0.0015)


def test_samples_of_groups_are_used_where_all_runs_have_them(tmp_path):
    made = study("old", "new", "newer", seeds=(1, 2))
    found = results(tmp_path / "r.json", made, [0.5] * 6, [[0.5, 0.5]] * 6)
    (old,) = shares(found, made.rows[0])
    for run in made.runs[2:5]:
        found.add(score(run, 0.5, [0.5, 0.5], group_samples=[0.4, 0.6]))
    (mixed,) = shares(found, made.rows[0])
    # Seed 2 of "newer" is old.
    assert [mixed.cells[n].interval == old.cells[n].interval for n in mixed.cells] == [1, 0, 1]
    assert mixed.cells["new"].interval == pytest.approx((0.4, 0.6), abs=0.01)
    against = replace(made.rows[0].columns[2], against="new")
    for column in (made.rows[0].columns[1], against):
        assert mixed.difference(column, mixed) == old.difference(column, old)
    found.add(score(made.runs[5], 0.5, [0.5, 0.5], group_samples=[0.4, 0.8]))
    (whole,) = shares(found, made.rows[0])
    assert whole.difference(against, whole).interval == pytest.approx((0, 0.1), abs=0.01)


def test_a_share_of_the_data_is_compared_with_another_share_of_the_baseline(tmp_path):
    made = study("baseline", "ELMo", seeds=(1,), fractions=(0.1, 1))
    values = [0.5, 0.7, 0.6, 0.8]  # the baseline on 10 and 100 %, ELMo on 10 and 100 %
    found = results(tmp_path / "r.json", made, values, [[value] * 1000 for value in values])
    (row,) = made.rows
    small, whole = shares(found, row)
    change = small.difference(row.columns[1], whole)
    assert change.mean == pytest.approx(-0.1)
    assert change.interval == pytest.approx((-0.1, -0.1))
    assert small.difference(row.columns[1], small).mean == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("num_seeds", "deviations"),
    [
        ((2, 2), (0.01, 0.01)),
        ((3, 3), (0.01, 0.03)),
        ((1, 3), (0.01, 0.01)),
        ((5, 2), (0.01, 0.01)),
        ((5, 2), (0.003, 0.03)),
    ],
)
def test_intervals_contain_the_true_difference_at_their_level(tmp_path, num_seeds, deviations):
    generator = numpy.random.default_rng(0)
    made = study("baseline", "ELMo", seeds=range(1, max(num_seeds) + 1))
    hits = 0
    for _ in range(300):
        values, samples = [], []
        for number, deviation in zip(num_seeds, deviations):
            # The deviation over test data is 0.004.
            of_seeds = generator.normal(0.5 + generator.normal(0, 0.004), deviation, number)
            draws = generator.normal(0, 0.004, 200)
            missing = [None] * (max(num_seeds) - number)
            values += [*of_seeds, *missing]
            samples += [*(of_seeds[:, None] + draws).tolist(), *missing]
        found = results(tmp_path / "r.json", made, values, samples)
        low, high = difference(found, made.rows[0], 1).interval
        hits += low <= 0.0 <= high
    assert 0.92 <= hits / 300 <= 0.98


@pytest.mark.parametrize("metric", ["f1", "best_validation_f1"])
def test_the_baseline_is_the_one_with_the_best_score_on_dev(tmp_path, metric):
    columns = [Column(name, metric, None) for name in ("one", "two", "three")]
    made = study(*columns, seeds=(1,), num_baselines=2)
    found = results(tmp_path / "r.json", made, [0.6, 0.5, 0.7])
    for name, value in (("one", 0.4), ("two", 0.5), ("three", 0.9)):
        found.scores("NER", name)[0]["training"]["best_validation_f1"] = value
    assert shares(found, made.rows[0])[0].baseline == "two"
