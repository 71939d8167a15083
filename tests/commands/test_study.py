import json
import shutil
from pathlib import Path

import pytest

from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.train_run import RunFailed
from elmo_plugin.util.folder_lock import lock_folder
from tests.commands.running import failure, run

PROJECT = Path(__file__).parents[2]
STUDY = """
local paths = import 'PROJECT/experiments/lib/paths.libsonnet';
local small = import 'PROJECT/fixtures/experiments/small_ner.libsonnet';
(import 'PROJECT/experiments/lib/study.libsonnet') {
  settings+: {
    title: 'Named entities',
    seeds: [1],
    rows: [{
      name: 'NER',
      metric: 'f1-measure-overall',
      evaluate: paths.ner.test,
      settings: { num_epochs: 10 },
      local baseline = (import 'PROJECT/experiments/ner.jsonnet') + small,
      local elmo = (import 'PROJECT/experiments/ner_elmo.jsonnet') + small,
      columns: [
        { name: 'baseline', experiment: baseline, paper: 90.15 },
        { name: 'ELMo', experiment: elmo, paper: 92.22 },
      ],
    }],
  },
}
""".replace("PROJECT", str(PROJECT))


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "named.jsonnet"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study that was trained in two calls."""
    folder = tmp_path_factory.mktemp("study")
    # `allennlp evaluate` would split another path at its commas.
    test = folder / "test, in one file.conll"
    shutil.copy(PROJECT / "fixtures/corpora/ner/test.conll", test)
    (folder / "named.jsonnet").write_text(STUDY.replace("paths.ner.test", f"'{test}'"))
    run("elmo-study", folder / "named.jsonnet", "-s", folder / "out", "--only", "baseline")
    run("elmo-study", folder / "named.jsonnet", "-s", folder / "out", "--discard")
    return folder


def test_a_study_is_trained_and_compared(finished):
    found = Results(finished / "out/results.json")
    assert found.num_missing() == 0
    for column in ("baseline", "ELMo"):
        (score,) = found.scores("NER", column)
        evaluation = score["evaluation"]["f1-measure-overall"]
        assert 0.0 < evaluation <= 1.0
        samples = score["samples"]["f1-measure-overall"]
        assert len(samples) == 1000 and min(samples) < evaluation < max(samples)
        assert len(score["history"]) == 10
    table = (finished / "out/tables.md").read_text()
    assert table.startswith("# Named entities\n\n|  | model | paper | score | seeds |")
    assert "| NER | baseline | 90.15 |" in table and " to " in table
    # The second call has deleted what it trained, and only that.
    (left,) = (finished / "out/runs").iterdir()
    assert left.name.startswith("ner-baseline-seed-1-")


def test_what_has_a_score_is_not_trained_again(finished, monkeypatch, capsys):
    monkeypatch.setattr("subprocess.Popen", None)
    run("elmo-study", finished / "named.jsonnet", "-s", finished / "out")
    scores, summary = capsys.readouterr().out.strip().split("\n\n")
    assert scores.startswith("|  | model | paper | score | seeds |")
    lines = summary.splitlines()
    assert lines[0].startswith("|  | baseline | score | best model |")
    assert lines[2].startswith("| NER |")


def test_scores_of_another_study_are_reused(finished, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("subprocess.Popen", None)
    kept = finished / "out/results.json"
    run("elmo-study", finished / "named.jsonnet", "-s", tmp_path / "out", "--reuse", kept)
    content = json.loads((tmp_path / "out/results.json").read_text())
    assert content["scores"] == json.loads(kept.read_text())["scores"]
    missing = tmp_path / "none.json"
    message = failure(
        "elmo-study", finished / "named.jsonnet", "-s", tmp_path / "out", "--reuse", missing
    )
    assert f"{missing}: expected the results.json of a study, found none." in message


def test_scores_of_other_settings_are_kept_but_not_shown(finished, tmp_path, capsys):
    kept = (finished / "out/results.json").read_text()
    (tmp_path / "results.json").write_text(kept)
    changed = tmp_path / "named.jsonnet"
    changed.write_text(STUDY.replace("num_epochs: 10", "num_epochs: 9"))
    failure("elmo-study", changed, "-s", tmp_path, "--only", "no such run")
    # A command that fails before it trains changes nothing.
    assert (tmp_path / "results.json").read_text() == kept
    # Nor are they reused.
    other = tmp_path / "other"
    reuse = ("--reuse", finished / "out/results.json", "--only", "no such run")
    failure("elmo-study", changed, "-s", other, *reuse)
    assert "results.json: scores of the same settings and data: 0\n" in capsys.readouterr().err
    # With the settings as they were, the scores are shown again.
    run("elmo-study", finished / "named.jsonnet", "-s", tmp_path)
    assert "without a score" not in capsys.readouterr().out


def test_failures_are_reported_at_the_end(study, tmp_path, monkeypatch, capsys):
    def failing(runs, *_):
        return [(run, RunFailed("allennlp train failed")) for run in runs]

    monkeypatch.setattr("elmo_plugin.commands.study.train_all", failing)
    message = failure("elmo-study", study, "-s", tmp_path / "out", "--only", "baseline")
    assert "1 of the runs failed or lack the metric of the study (NER, baseline, seed 1)" in message
    assert "1 of 1: NER, baseline, seed 1: allennlp train failed\n" in capsys.readouterr().err
    content = json.loads((tmp_path / "out/results.json").read_text())
    assert content["scores"] == [] and len(content["runs"]) == 2


def test_a_misspelt_metric_is_reported_and_corrected_without_training(
    finished, tmp_path, monkeypatch, capsys
):
    shutil.copytree(finished / "out", tmp_path / "out")
    # The baseline has its folder; its score is computed again.
    (tmp_path / "out/results.json").unlink()
    misspelt = tmp_path / "named.jsonnet"
    misspelt.write_text(STUDY.replace("'f1-measure-overall'", "'f1-overall'"))
    monkeypatch.setattr("subprocess.Popen", None)
    arguments = (misspelt, "-s", tmp_path / "out", "--only", "baseline", "--discard")
    message = failure("elmo-study", *arguments)
    assert "lack the metric of the study (NER, baseline, seed 1)." in message
    shown = capsys.readouterr()
    expected = "NER, baseline, seed 1: expected the metric f1-overall, found only "
    assert expected in shown.err and "f1-measure-overall" in shown.err
    # Next time, before anything is trained. The missing number of runs includes this one.
    assert expected in failure("elmo-study", *arguments)
    run("elmo-study", misspelt, "-s", tmp_path / "out", "--show")
    assert "runs without a score yet: 2" in capsys.readouterr().out
    misspelt.write_text(STUDY)
    run("elmo-study", *arguments)
    (score,) = Results(tmp_path / "out/results.json").scores("NER", "baseline")
    assert len(score["samples"]["f1-measure-overall"]) == 1000


def test_a_study_can_be_shown_while_it_runs_and_its_results_are_not_written(finished, capsys):
    kept = finished / "out/results.json"
    before = kept.stat()
    lock = lock_folder(finished / "out")
    try:
        run("elmo-study", finished / "named.jsonnet", "-s", finished / "out", "--show")
    finally:
        lock.release()
    assert "| NER | baseline | 90.15 |" in capsys.readouterr().out
    after = kept.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
