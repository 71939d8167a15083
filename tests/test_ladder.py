"""`scripts/ladder.py` trains experiments that share a time, and makes a table of them."""

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

PROJECT = Path(__file__).resolve().parents[1]
SCRIPT = PROJECT / "scripts" / "ladder.py"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the script with arguments. Returns what it prints, with its error if it fails."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        try:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        except SystemExit as ended:
            if ended.code:
                return f"error: {ended.code} {capsys.readouterr().err}"
        return capsys.readouterr().out

    return run


def finish(folder, name, perplexity, num_batches):
    """What `allennlp train` leaves, as far as it is read."""
    (folder / name).mkdir()
    metrics = {f"validation_{kind}perplexity": perplexity for kind in ("", "forward_", "backward_")}
    (folder / name / "metrics.json").write_text(json.dumps(metrics))
    (folder / name / "config.json").write_text('{"data_loader": {"tokens_per_batch": 3072}}')
    state = {
        "elmo-recoverable": {"total_batches_completed": num_batches},
        "learning_rate_scheduler": {"elapsed": 1201.0},
    }
    torch.save(state, folder / name / "training_state_e1_b0.th")


def test_the_best_comes_first(tmp_path, run):
    finish(tmp_path, "adam_3072", 172.2, 1504)
    finish(tmp_path, "muon_3072", 164.2, 1359)
    assert run("table", tmp_path, "--json", tmp_path / "ladder.json").splitlines()[2:] == [
        "| `ladder/muon_3072` | Muon with batches of 3,072 tokens | 1,359 | 4.17 | 164.2 |",
        "| `ladder/adam_3072` | Adam with batches of 3,072 tokens | 1,504 | 4.62 | 172.2 |",
    ]
    rows = json.loads((tmp_path / "ladder.json").read_text())
    assert [row["tokens"] for row in rows] == [1504 * 3072, 1359 * 3072]
    assert rows[0]["minutes"] == 20.02
    # What has finished is not trained again.
    assert run("train", tmp_path, "--only", "adam_3072") == ""


def test_unknown_experiments_and_empty_folders_are_named(tmp_path, run):
    shown = run("train", tmp_path, "--only", "adamant")
    assert shown.startswith("error: ") and "no such experiments" in shown and "adamant" in shown
    shown = run("table", tmp_path)
    assert shown.startswith("error: ") and "no experiment has finished" in shown
