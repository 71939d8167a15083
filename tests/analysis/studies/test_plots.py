import pytest

from elmo_plugin.analysis.studies.plots import draw_row
from elmo_plugin.util.pictures import import_pyplot
from tests.analysis.studies.scores import results, study


@pytest.mark.parametrize("compare", [False, True])
def test_scores_that_are_not_compared_start_at_zero_and_all_are_within_the_panel(tmp_path, compare):
    made = study("layer 0", "layer 1", seeds=(1,), compare=compare, percent=False)
    pyplot = import_pyplot()
    figure, axis = pyplot.subplots()
    draw_row(axis, results(tmp_path / "r.json", made, [0.3, 0.4]), made.rows[0])
    low, high = axis.get_ylim()
    pyplot.close(figure)
    assert (low == 0) is not compare
    assert low < 0.3 and high > 0.4


@pytest.mark.parametrize("fractions", [(1,), (0.1, 1)])
def test_bars_are_the_intervals_of_the_scores(tmp_path, fractions):
    made = study("baseline", "ELMo", seeds=(1,), fractions=fractions)
    samples = [[number / 1000 for number in range(1001)]] * len(made.runs)
    values = [0.5] * len(made.runs)
    pyplot = import_pyplot()
    figure, axis = pyplot.subplots()
    draw_row(axis, results(tmp_path / "r.json", made, values, samples), made.rows[0])
    bars = [bar for line in axis.containers for bar in line.lines[2][0].get_segments()]
    pyplot.close(figure)
    assert len(bars) == len(made.runs)
    for bar in bars:
        assert bar[:, 1] == pytest.approx([2.5, 97.5])
