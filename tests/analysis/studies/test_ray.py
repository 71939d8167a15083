"""Runs of a study as tasks of a real Ray on this machine."""

import os
import signal
import threading

import pytest

from elmo_plugin.analysis.studies.train_all import train_all_with_ray
from elmo_plugin.analysis.studies.train_run import RunFailed
from tests.local_ray import local_ray
from tests.waiting import wait_until


@pytest.fixture
def cluster(fake):
    """A Ray whose workers find the fake program."""
    with local_ray():
        yield fake


def test_runs_are_trained_and_a_failure_stops_nothing_else(cluster, make_run):
    runs = [make_run(1), make_run(2, fail="never"), make_run(3)]
    outcomes = {run.seed: outcome for run, outcome in train_all_with_ray(runs, cluster.folder)}
    assert isinstance(outcomes[2], RunFailed) and "no such thing" in str(outcomes[2])
    assert outcomes[1]["evaluation"] == outcomes[3]["evaluation"] == {"f1": 0.25, "loss": 2.0}
    assert {threads for _, _, threads in cluster.calls} == {"1"}


def test_a_task_whose_worker_is_killed_goes_on(cluster, make_run):
    go = cluster.folder / "go"
    outcomes = train_all_with_ray([make_run(wait=str(go))], cluster.folder)

    def kill():
        try:
            wait_until(lambda: cluster.commands, seconds=300)
            os.kill(cluster.parents[0], signal.SIGKILL)
            wait_until(lambda: len(cluster.commands) == 2, seconds=300)
        finally:
            go.touch()

    # The tasks are started by the first `next`.
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = list(outcomes)
    killer.join()
    assert cluster.commands == ["train", "train --recover", "evaluate"]
    assert found[0][1]["evaluation"] == {"f1": 0.25, "loss": 2.0}
