"""Experiments of tasks, killed by SIGKILL: what `--recover` ends with is what was to come."""

import json
import re
import tarfile
from pathlib import Path
from random import Random

import lmdb
import pytest
import torch
from allennlp.common import Params

import elmo_plugin.plugin  # noqa: F401
from tests.training.killed_training import count_events, train, train_with_kills

EXPERIMENTS = Path(__file__).parents[2] / "fixtures" / "experiments"
# A vocabulary, three batches, two files that are written and renamed.
_FIRST_CHECKPOINT = 8
# Of training, the interrupted epoch has the metrics of the batches after the checkpoint.
MAY_DIFFER = re.compile("training_(?!elmo)|memory")


def load(name, cache=None):
    experiment = Params.from_file(EXPERIMENTS / f"{name}.jsonnet").as_dict(quiet=True)
    experiment["trainer"]["num_epochs"] = 2
    experiment["trainer"]["checkpointer"]["save_every_num_batches"] = 3
    if cache is not None:
        experiment["model"]["placement"]["elmo"]["cache"] = str(cache)
    return experiment


def weights_of(archive: Path):
    with tarfile.open(archive) as members:
        return torch.load(members.extractfile("weights.th"), weights_only=True)


def assert_same_end(found: Path, expected: Path) -> None:
    metrics = [json.loads((folder / "metrics.json").read_text()) for folder in (found, expected)]
    for name in metrics[1]:
        assert metrics[0][name] == metrics[1][name] or MAY_DIFFER.search(name), name
    assert metrics[0].keys() == metrics[1].keys()
    for read, name in ((weights_of, "model.tar.gz"), (torch.load, "best.th")):
        states = [read(folder / name) for folder in (found, expected)]
        assert states[0].keys() == states[1].keys()
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[1])
    assert not list(found.glob("*.unfinished"))


# Adam and a CRF; adadelta and moving averages. Both with ELMo, whose loader is a batch ahead, and
# whose layers are rounded: computed in other batches, some would differ.
@pytest.mark.parametrize("name, seed", [("ner_elmo", 0), ("squad_elmo", 1)])
def test_a_killed_task_ends_like_an_uninterrupted_one(tmp_path, name, seed):
    assert train(load(name, tmp_path / "cache"), tmp_path / "whole")
    draw = Random(seed)
    num_starts = train_with_kills(
        load(name, tmp_path / "another cache"),
        tmp_path / "killed",
        (draw.randint(10, 30) for _ in range(100)),
    )
    assert num_starts > 2
    assert_same_end(tmp_path / "killed" / "run", tmp_path / "whole" / "run")


def test_a_run_recovers_from_a_kill_at_every_kind_of_event(tmp_path):
    experiment = load("ner")
    assert train(experiment, tmp_path / "whole")
    events = count_events(tmp_path / "whole")
    # The last of each kind, and the file of a checkpoint that is written first.
    moments = {len(events) - events[::-1].index(kind) for kind in events}
    moments.add(events.index("save") + 1)
    assert {"save_to_files", "dump_metrics", "archive_model"} < {events[n - 1] for n in moments}
    for moment in sorted(moments):
        folder = tmp_path / f"killed at {moment}"
        assert not train(experiment, folder, moment)
        assert train(experiment, folder)
        assert_same_end(folder / "run", tmp_path / "whole" / "run")


def test_what_elmo_s_cache_got_before_a_checkpoint_outlives_a_kill(tmp_path):
    assert not train(load("ner_elmo", tmp_path / "cache"), tmp_path, _FIRST_CHECKPOINT + 1)
    assert (tmp_path / "run" / "model_state_e0_b3.th").exists()
    (store,) = (tmp_path / "cache").iterdir()
    with lmdb.open(str(store), readonly=True) as cache:
        assert cache.stat()["entries"] > 10


def test_two_killed_processes_end_like_uninterrupted_ones(tmp_path):
    experiment = {**load("ner"), "distributed": {"cuda_devices": [-1, -1]}}
    assert train(experiment, tmp_path / "whole")
    assert train_with_kills(experiment, tmp_path / "killed", iter([14, 20, None])) == 3
    assert_same_end(tmp_path / "killed" / "run", tmp_path / "whole" / "run")
