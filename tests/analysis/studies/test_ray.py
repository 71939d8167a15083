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


def test_a_failure_stops_nothing_else_and_a_killed_worker_s_task_goes_on(cluster, make_run):
    go = cluster.folder / "go"
    runs = [make_run(1, wait=str(go)), make_run(2, fail="never")]

    def kill():
        try:
            wait_until(lambda: cluster.commands, seconds=300)
            os.kill(cluster.parents[0], signal.SIGKILL)
            wait_until(lambda: "train --recover" in cluster.commands, seconds=300)
        finally:
            go.touch()

    # The tasks are started by the first `next`.
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = train_all_with_ray(runs, cluster.folder, num_cpus=2)
    outcomes = {run.seed: outcome for run, outcome in found}
    killer.join()
    assert outcomes[1]["evaluation"] == {"f1": 0.25, "loss": 2.0}
    assert isinstance(outcomes[2], RunFailed) and "no such thing" in str(outcomes[2])
    assert {threads for _, _, threads in cluster.calls} == {"2"}
