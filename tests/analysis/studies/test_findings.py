import pytest

from elmo_plugin.analysis.studies.findings import VERDICTS, findings, note_epochs
from tests.analysis.studies.scores import results, study

HOLDS, FAILS, UNDECIDED, TOO_FEW = VERDICTS


def around(value, width):
    """Bootstrap samples, whose interval has nearly this width on both sides."""
    return [value + width * number / 500 for number in range(-500, 501)]


@pytest.fixture
def verdicts(tmp_path):
    """The verdicts on a study without noise in its baseline, whose score is 0.5."""

    def decide(made, values, width=0.01, histories=None, epochs=None):
        samples = [around(value or 0, width if value != 0.5 else 0) for value in values]
        found = results(tmp_path / "r.json", made, values, samples, histories)
        return [(each.where, each.model, each.verdict) for each in findings(found, epochs or {})]

    return decide


@pytest.mark.parametrize("lower_is_better, better", [(False, 0.6), (True, 0.4)])
def test_a_claim_holds_if_the_interval_is_on_its_side_of_zero(verdicts, lower_is_better, better):
    made = study("a", "b", "c", seeds=(1,), lower_is_better=lower_is_better)
    values = [0.5, better, 1 - better]
    assert verdicts(made, values) == [("NER", "b", HOLDS), ("NER", "c", FAILS)]
    assert verdicts(made, values, width=0.2) == [("NER", "b", UNDECIDED), ("NER", "c", UNDECIDED)]


@pytest.mark.parametrize(
    "histories, expected",
    [
        ([[0.1, 0.5], [0.2, 0.6]], HOLDS),
        ([[0.2, 0.5], [0.1, 0.6]], UNDECIDED),
        # The worse model on dev led before.
        ([[0.1, 0.6], [0.2, 0.5]], UNDECIDED),
        ([[0.1, 0.5], []], HOLDS),
    ],
)
def test_a_lead_of_one_epoch_is_undecided(verdicts, histories, expected):
    made = study("a", "b", seeds=(1,))
    assert verdicts(made, [0.5, 0.6], histories=histories) == [("NER", "b", expected)]


@pytest.mark.parametrize(
    "fraction, num_epochs, rises, expected",
    [
        (0.1, 3, True, TOO_FEW),
        (0.1, 4, True, HOLDS),
        (0.1, 3, False, HOLDS),
        (1, 3, True, HOLDS),
    ],
)
def test_a_part_of_the_data_needs_more_epochs_than_all(
    verdicts, fraction, num_epochs, rises, expected
):
    made = study("a", "b", seeds=(1,), fractions=(fraction,))
    low, high = ([start + n / 10 for n in range(num_epochs)] for start in (0.0, 0.1))
    histories = [low, high] if rises else [low[::-1], high[::-1]]
    decided = verdicts(made, [0.5, 0.6], histories=histories, epochs={"NER": 3, "SRL": 9})
    assert decided == [("NER", "b", expected)]
    # No run on all data is known.
    if expected == TOO_FEW:
        assert verdicts(made, [0.5, 0.6], histories=histories) == [("NER", "b", HOLDS)]


def test_epochs_are_the_most_of_all_studies(tmp_path):
    made = study("a", rows=("NER", "SRL"), seeds=(1, 2), fractions=(0.1, 1))
    # For each row: two seeds with a part of the data, and two with all.
    lengths = [9, 9, 3, 5, 9, 9, 2, 1]
    histories = [[0.5] * length for length in lengths]
    epochs = {"NER": 4, "SRL": 4}
    note_epochs(results(tmp_path / "r.json", made, [0.5] * 8, None, histories), epochs)
    assert epochs == {"NER": 5, "SRL": 4}


def test_the_main_finding_is_of_the_best_model_on_dev(tmp_path):
    made = study("a", "b", "c", seeds=(1,))
    found = results(
        tmp_path / "r.json", made, [0.5, 0.7, 0.6], [around(v, 0) for v in (0.5, 0.7, 0.6)]
    )
    for run, on_dev in zip(made.runs, (0.5, 0.6, 0.7)):
        found._scores[run.digest]["training"]["best_validation_f1"] = on_dev
    assert [(each.model, each.is_main) for each in findings(found, {})] == [
        ("b", False),
        ("c", True),
    ]
