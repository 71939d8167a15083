"""`scripts/learning_curve.py` measures the checkpoints of a run and draws them."""

import copy
import json
import runpy
import sys
from pathlib import Path

import pytest
from allennlp.commands.train import train_model
from allennlp.common import Params

import elmo_plugin.plugin  # noqa: F401
from tests.bilm.pretraining.tiny import make_experiment

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "learning_curve.py"


def run(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        runpy.run_path(str(SCRIPT), run_name="__main__")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a run of two epochs that decays over a time which is not used up."""
    folder = tmp_path_factory.mktemp("curve")
    experiment = make_experiment(
        folder,
        "sentences",
        learning_rate_scheduler={"type": "elmo-linear-decay", "minutes": 100},
        checkpointer={
            "type": "elmo-atomic",
            "save_every_num_batches": 5,
            "keep_most_recent_by_count": None,
        },
    )
    train_model(Params(copy.deepcopy(experiment)), folder / "run")
    run("measure", folder / "run", folder / "heldout.txt", folder / "curve.json")
    return folder


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_each_checkpoint_is_evaluated(folder):
    points = read(folder / "curve.json")
    saved = sorted((folder / "run").glob("training_state_*.th"))
    assert len(points) == len(saved) > 3
    for name in ("tokens", "minutes"):
        values = [point[name] for point in points]
        assert values == sorted(values) and values[0] > 0
    # The ends of the two epochs.
    ends = [point for point in points if point["checkpoint"][1] == 0]
    for epoch, point in enumerate(ends):
        metrics = read(folder / "run" / f"metrics_epoch_{epoch}.json")
        for name in ("perplexity", "forward_perplexity", "backward_perplexity"):
            assert point[name] == pytest.approx(metrics[f"validation_{name}"], rel=1e-6)


def test_what_was_measured_is_kept_and_what_is_missing_is_added(folder, tmp_path):
    points = read(folder / "curve.json")
    kept = [{**points[0], "perplexity": 1.5}, *points[2:]]
    (tmp_path / "curve.json").write_text(json.dumps(kept))
    run("measure", folder / "run", folder / "heldout.txt", tmp_path / "curve.json")
    assert read(tmp_path / "curve.json") == [*kept, points[1]]


def test_a_run_that_continues_another_counts_on(folder, tmp_path):
    points = read(folder / "curve.json")
    (tmp_path / "before.json").write_text(json.dumps([{**points[0], "run": "before"}]))
    run(
        *("measure", folder / "run", folder / "heldout.txt", tmp_path / "curve.json"),
        *("--after", tmp_path / "before.json"),
    )
    found = read(tmp_path / "curve.json")
    assert found[0]["run"] == "before" and len(found) == 1 + len(points)
    for name in ("tokens", "minutes"):
        assert found[-1][name] == pytest.approx(points[0][name] + points[-1][name])
    # Both may be in one file, which has some points of this run if it was stopped.
    curve = tmp_path / "curve.json"
    curve.write_text(json.dumps(found[:2]))
    run("measure", folder / "run", folder / "heldout.txt", curve, "--after", curve)
    assert read(curve) == found


def test_a_picture_is_drawn(folder, tmp_path):
    run("draw", folder / "curve.json", tmp_path / "curve.svg", "--line", "5-gram=15", "unigram=20")
    assert (tmp_path / "curve.svg").read_bytes().startswith(b"<?xml")
