import pytest

from elmo_plugin.analysis.studies.plots import draw_scores, panels
from elmo_plugin.analysis.studies.study import Study
from elmo_plugin.util.plotting import new_figure
from tests.analysis.studies.scores import results, study


@pytest.fixture
def axis():
    return new_figure().subplots()


def test_rows_that_are_not_compared_share_a_panel_that_starts_at_zero(tmp_path, axis):
    made = study("layer 0", "layer 1", rows=("NER", "SRL"), seeds=(1,), compare=False)
    (panel,) = panels(results(tmp_path / "r.json", made, [0.3, 0.4, 0.5]))
    panel.draw(axis)
    low, high = axis.get_xlim()
    assert low == 0 and high > 50
    assert [label.get_text() for label in axis.get_yticklabels()] == ["NER", "SRL"]
    # The second layer of the second row has no score.
    marks = [line.get_xydata().tolist() for line in axis.get_lines()]
    assert marks == [[[30, 0], [50, 1]], [[40, 0]]]


def test_shares_of_the_data_and_negative_values_are_shown(tmp_path, axis):
    made = study("value", rows=("a", "b"), seeds=(1,), fractions=(0.1, 1), compare=False)
    (panel,) = panels(results(tmp_path / "r.json", made, [-0.1, 0.2, None, 0.3]))
    panel.draw(axis)
    assert axis.get_xlim()[0] < -10
    labels = [label.get_text() for label in axis.get_yticklabels()]
    assert labels == ["a, 10 %", "a, 100 %", "b, 100 %"]


def test_values_of_several_units_have_panels_of_their_own(tmp_path):
    first, second = (
        study("value", rows=(name,), seeds=(1,), compare=False, percent=name == "a")
        for name in "ab"
    )
    made = Study("A title", first.rows + second.rows, first.runs + second.runs)
    found = panels(results(tmp_path / "r.json", made, [0.1, 0.2]))
    assert [panel.title for panel in found] == ["A title, F1, %", "A title, F1"]


def test_the_legend_of_values_has_no_other_rows(tmp_path):
    compared = study("baseline", "ELMo", rows=("a",), seeds=(1,), fractions=(0.1, 1))
    other = study("weight", rows=("b",), seeds=(1,), compare=False)
    made = Study("A title", compared.rows + other.rows, compared.runs + other.runs)
    draw_scores(results(tmp_path / "r.json", made, [0.5] * 5), [tmp_path / "a.svg"])
    # Texts are comments in the SVG of matplotlib.
    assert (tmp_path / "a.svg").read_text().count("<!-- ELMo -->") == 1


def test_columns_are_named_from_the_top_and_those_without_a_score_are_left_out(tmp_path, axis):
    made = study("baseline", "not run", "ELMo", seeds=(1,))
    (panel,) = panels(results(tmp_path / "r.json", made, [0.3, None, 0.4]))
    panel.draw(axis)
    assert panel.title == "NER"
    assert [label.get_text() for label in axis.get_yticklabels()] == ["baseline", "ELMo"]
    assert [line.lines[0].get_xydata().tolist() for line in axis.containers] == [
        [[30, 0]],
        [[40, 1]],
    ]
    assert axis.yaxis_inverted()


@pytest.mark.parametrize("fractions, values", [((1,), 0), ((0.1, 1), 1)])
def test_bars_are_the_intervals_of_the_scores(tmp_path, axis, fractions, values):
    made = study("baseline", "ELMo", seeds=(1,), fractions=fractions)
    samples = [[number / 1000 for number in range(1001)]] * len(made.runs)
    found = results(tmp_path / "r.json", made, [0.5] * len(made.runs), samples)
    panels(found)[0].draw(axis)
    bars = [bar for line in axis.containers for bar in line.lines[2][0].get_segments()]
    assert len(bars) == len(made.runs)
    for bar in bars:
        assert bar[:, values] == pytest.approx([2.5, 97.5])


@pytest.mark.parametrize("percent, bar", [(True, [0, 100]), (False, [-10, 20])])
def test_bars_end_where_percentages_do(tmp_path, axis, percent, bar):
    made = study("baseline", seeds=(1,), percent=percent)
    samples = [-10.0] * 500 + [20.0] * 500
    panels(results(tmp_path / "r.json", made, [0.5], [samples]))[0].draw(axis)
    (found,) = axis.containers[0].lines[2][0].get_segments()
    assert found[:, 0] == pytest.approx(bar)


def test_bars_of_two_models_do_not_hide_each_other(tmp_path, axis):
    made = study("baseline", "ELMo", seeds=(1,), fractions=(0.1, 1))
    panels(results(tmp_path / "r.json", made, [0.5] * 4))[0].draw(axis)
    first, second = ([x for x, _ in line.lines[0].get_xydata()] for line in axis.containers)
    assert all(one < other for one, other in zip(first, second))


def test_nothing_is_written_without_a_score(tmp_path):
    draw_scores(results(tmp_path / "r.json", study("baseline", "ELMo"), []), [tmp_path / "a.svg"])
    assert not (tmp_path / "a.svg").exists()
