import json
from dataclasses import replace

import pytest

from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.util.errors import ConfigurationError
from tests.analysis.studies.scores import results, score, study


@pytest.fixture
def empty(tmp_path):
    """Results of a study without scores."""

    def make(made):
        found = Results(tmp_path / "none.json")
        found.set_study(made)
        return found

    return make


def names(runs):
    return [run.name for run in runs]


def test_what_is_saved_is_read_again_and_seeds_and_rows_can_be_added(tmp_path):
    made = study(("baseline", 81.1), "ELMo")
    first = results(tmp_path / "r.json", made, [0.1, 0.2, 0.3], [[0.1, 0.2]] * 3)
    first.save()
    second = Results(tmp_path / "r.json")
    assert (second.title, second.rows) == ("A title", list(made.rows))
    assert second.scores("NER", "baseline") == first.scores("NER", "baseline")
    assert names(second.missing(made.runs)) == ["NER, ELMo, seed 2"] and second.num_missing() == 1
    # A line per score.
    assert len((tmp_path / "r.json").read_text().splitlines()) >= 3
    larger = study("baseline", "ELMo", rows=("NER", "SRL"), seeds=(1, 2, 3))
    second.set_study(larger)
    missing = names(second.missing(larger.runs))
    assert missing[:2] == ["NER, baseline, seed 3", "NER, ELMo, seed 2"] and len(missing) == 9


def test_runs_of_the_same_digest_are_one(empty):
    made = study("before", "after", seeds=(1,))
    made = replace(made, runs=tuple(replace(run, digest="one") for run in made.runs))
    found = empty(made)
    (run,) = found.missing(made.runs)
    assert found.num_missing() == 1
    found.add(score(run, 0.5))
    assert found.scores("NER", "before") == found.scores("NER", "after") != []
    assert found.num_missing() == 0


def test_samples_of_all_metrics_of_a_shared_run_are_needed_to_reuse_its_score(empty):
    made = study("baseline", rows=("accuracy", "F1"), seeds=(1,))
    rows = tuple(
        replace(row, columns=(replace(row.columns[0], metric=metric),))
        for row, metric in zip(made.rows, ("accuracy", "f1"))
    )
    made = replace(made, rows=rows, runs=tuple(replace(run, digest="one") for run in made.runs))
    found, other = empty(made), empty(replace(made, rows=rows[:1], runs=made.runs[:1]))
    samples = {"accuracy": [0.5], "f1": [0.5], "recall": [0.5]}
    evaluation = {name: 0.5 for name in samples}
    kept = {**score(made.runs[0], 0.5), "evaluation": evaluation, "samples": samples}
    kept.update(training={}, group_samples=samples)
    other.add(kept)
    assert found.reuse(other) == 0 and found.missing(made.runs)
    found.add(kept)
    assert not found.missing(made.runs)
    # Those of other metrics are not kept.
    (added,) = found.scores("F1", "baseline")
    assert added["samples"] == added["group_samples"] == {"accuracy": [0.5], "f1": [0.5]}


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"title": "x", "rows": [{"a": 1}]})])
def test_another_file_is_refused(content, tmp_path):
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(ConfigurationError, match="r.json: expected what elmo study writes, found"):
        Results(tmp_path / "r.json")
