import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "mean_of_runs.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True
    )


@pytest.fixture
def files(tmp_path):
    paths = []
    for number, (f1, loss) in enumerate([(0.5, 0.3), (0.75, 0.1), (1.0, 0.5)]):
        paths.append(tmp_path / f"{number}.json")
        metrics = {"f1": f1, "loss": loss, "training_duration": "0:01:00", "peak": [1]}
        paths[-1].write_text(json.dumps({**metrics, f"only-{number}": 1.0}))
    return paths


def test_mean_and_sample_deviation_are_shown_of_what_all_runs_have(files):
    lines = [line.split() for line in run(*files).stdout.splitlines()]
    assert lines == [
        ["f1", "75.00", "±", "25.00", "(3", "runs)"],
        ["loss", "0.30", "±", "0.20", "(3", "runs)"],
    ]


def test_one_metric_of_one_run_has_no_deviation(files):
    assert run(files[0], "--metric", "f1").stdout.split() == ["f1", "50.00", "(1", "runs)"]


def test_a_metric_or_file_that_is_not_there_is_named(files, tmp_path):
    assert "they share ['f1', 'loss']" in run(*files, "--metric", "accuracy").stderr
    assert "nowhere.json: expected a file of metrics" in run(tmp_path / "nowhere.json").stderr
