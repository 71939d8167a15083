import pytest

from elmo_plugin.analysis.studies.findings import findings
from elmo_plugin.analysis.studies.plots import figures
from elmo_plugin.analysis.studies.study import Study
from elmo_plugin.util.plotting import new_figure
from tests.analysis.studies.scores import results, study


@pytest.fixture
def drawn(tmp_path):
    """Draws the only figure of a study; returns it and its axes."""

    def draw(made, values, samples=None):
        found = results(tmp_path / "r.json", made, values, samples)
        *_, figure = figures(found, findings(found, {}))
        axis = new_figure().subplots()
        figure.draw(axis)
        return figure, axis

    return draw


def names(axis):
    return [label.get_text() for label in axis.get_yticklabels()]


def test_rows_that_are_not_compared_share_a_figure_that_starts_at_zero(drawn):
    made = study("layer 0", "layer 1", rows=("NER", "SRL"), seeds=(1,), compare=False)
    _, axis = drawn(made, [0.3, 0.4, 0.5])
    low, high = axis.get_xlim()
    assert low == 0 and high > 50 and names(axis) == ["NER", "SRL"]
    # The second layer of the second row has no score.
    marks = [line.get_xydata().tolist() for line in axis.get_lines()]
    assert marks == [[[30, 0], [50, 1]], [[40, 0]]]
    # Shares of the data and negative values.
    made = study("value", rows=("a", "b"), seeds=(1,), fractions=(0.1, 1), compare=False)
    _, axis = drawn(made, [-0.1, 0.2, None, 0.3])
    assert axis.get_xlim()[0] < -10 and names(axis) == ["a, 10 %", "a, 100 %", "b, 100 %"]


def test_rows_of_several_kinds_have_figures_of_their_own(tmp_path):
    compared = study("baseline", "ELMo", rows=("c",), seeds=(1,), fractions=(0.1, 1))
    first, second = (
        study("value", rows=(name,), seeds=(1,), compare=False, percent=name == "a")
        for name in "ab"
    )
    parts = (compared, first, second)
    made = Study("A title", sum((p.rows for p in parts), ()), sum((p.runs for p in parts), ()))
    found = results(tmp_path / "r.json", made, [0.5] * 6)
    assert [figure.caption for figure in figures(found, [])] == [
        "c",
        "A title, F1, %",
        "A title, F1",
    ]


def test_differences_are_named_from_the_top_and_drawn_by_their_verdict(drawn):
    made = study("baseline", "not run", "ELMo", "worse", "same", seeds=(1,))
    values = [0.3, None, 0.4, 0.2, 0.3]
    spread = [[value or 0, *[(value or 0) + 0.05] * 998, 0.3] for value in values]
    spread[0] = [0.3] * 1000
    spread[4] = [0.3 + number / 1e4 for number in range(-500, 500)]
    figure, axis = drawn(made, values, spread)
    assert figure.caption == "Differences" and axis.yaxis_inverted()
    models = ("ELMo", "worse", "same")
    assert names(axis) == [f"NER: {model}\n− baseline" for model in models]
    marks = {line.get_label(): line.lines[0] for line in axis.containers}
    points = {name: mark.get_xydata().tolist() for name, mark in marks.items()}
    assert list(points) == ["holds", "does not hold", "undecided"]
    assert points["holds"] == [[pytest.approx(10), 0]]
    assert points["does not hold"] == [[pytest.approx(-10), 1]]
    assert points["undecided"] == [[pytest.approx(0), 2]]
    assert (
        marks["undecided"].get_markerfacecolor() == "none" != marks["holds"].get_markerfacecolor()
    )
    bars = {line.get_label(): line.lines[2][0].get_segments() for line in axis.containers}
    assert bars["undecided"][0][:, 0] == pytest.approx([-4.7525, 4.7425], abs=0.01)


def test_a_row_with_one_scored_share_has_no_curve(tmp_path):
    made = study("baseline", "ELMo", seeds=(1,), fractions=(0.1, 1))
    found = results(tmp_path / "r.json", made, [None, 0.5, None, 0.6])
    assert figures(found, []) == []


def test_bars_are_the_intervals_of_the_scores_and_do_not_hide_each_other(drawn):
    made = study("baseline", "ELMo", seeds=(1,), fractions=(0.1, 1))
    samples = [[number / 1000 for number in range(1001)]] * len(made.runs)
    _, axis = drawn(made, [0.5] * len(made.runs), samples)
    bars = [line.lines[2][0].get_segments() for line in axis.containers]
    assert sum(map(len, bars)) == len(made.runs)
    for first, second in zip(*bars):
        assert first[:, 1] == pytest.approx([2.5, 97.5]) == second[:, 1]
        assert (first[:, 0] < second[:, 0]).all()


@pytest.mark.parametrize("percent, bar", [(True, [0, 100]), (False, [-10, 20])])
def test_bars_end_where_percentages_do(drawn, percent, bar):
    made = study("baseline", seeds=(1,), fractions=(0.1, 1), percent=percent)
    _, axis = drawn(made, [0.5, 0.5], [[-10.0] * 500 + [20.0] * 500] * 2)
    found, _ = axis.containers[0].lines[2][0].get_segments()
    assert found[:, 1] == pytest.approx(bar)
