"""Training in processes that `torchrun` starts, as on two machines."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from torch import distributed

from elmo_plugin.tasks.bilm import PretrainingTrainer
from elmo_plugin.training import torchrun
from tests.bilm.pretraining.tiny import make_experiment
from tests.tasks.bilm.test_trainer import assert_same_end
from tests.training.killed_training import train
from tests.waiting import wait_until

PROJECT = Path(__file__).parents[2]
TIMEOUT = 240


@contextmanager
def agents(folder, num_agents, *arguments):
    """Agents of `torchrun` on this machine that run `allennlp train`, each with a log."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = []
    try:
        for number in range(num_agents):
            command = [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes", str(num_agents)),
                *("--nproc-per-node", "1"),
                *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
                *("--rdzv-conf", f"is_host={int(number == 0)}", "--local-addr", "127.0.0.1"),
                *("-m", "allennlp", "train", str(folder / "experiment.json")),
                *("-s", str(folder / "run"), "--include-package", "tests.training.killed_training"),
                *arguments,
            ]
            with open(folder / f"agent{number}.log", "w") as log:
                agent = subprocess.Popen(
                    command,
                    cwd=PROJECT,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            running.append(agent)
        yield running
    finally:
        for agent in running:
            left = workers(agent) if agent.poll() is None else []
            agent.kill()
            agent.wait()
            for worker in left:
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)


def workers(agent):
    """The processes that an agent has started."""
    tasks = Path(f"/proc/{agent.pid}/task")
    found = " ".join((task / "children").read_text() for task in tasks.iterdir())
    return [int(number) for number in found.split()]


def logs(folder):
    return "\n".join(log.read_text()[-3000:] for log in folder.glob("agent*.log"))


def make_deterministic_experiment(folder):
    """Five streams, of which the processes have three and two; a checkpoint after every batch."""
    keep_all = {"save_every_num_batches": 1, "keep_most_recent_by_count": None}
    experiment = make_experiment(
        folder, "streams", checkpointer={"type": "elmo-atomic", **keep_all}
    )
    experiment["data_loader"]["batch_size"] = 5
    experiment["model"].update(num_samples=None, dropout=0.0)
    experiment["trainer"]["callbacks"] = ["elmo-test-stand-still"]
    return experiment


def test_killed_nodes_end_as_uninterrupted_processes_and_learn_what_one_does(tmp_path):
    experiment = make_deterministic_experiment(tmp_path)
    run = tmp_path / "run"
    (tmp_path / "experiment.json").write_text(json.dumps(experiment))
    holds = [tmp_path / f"hold_e{epoch}_b5" for epoch in range(2)]
    for hold in holds:
        hold.touch()
    wait = partial(wait_until, seconds=TIMEOUT, message=lambda: logs(tmp_path))
    with agents(tmp_path, 2) as (first, second):
        wait((run / "model_state_e0_b4.th").exists)
        (worker,) = workers(second)
        os.kill(worker, signal.SIGKILL)
        holds[0].unlink()
        assert first.wait(TIMEOUT) and second.wait(TIMEOUT)
    with agents(tmp_path, 2, "--recover") as (first, second):
        wait((run / "model_state_e1_b4.th").exists)
        (worker,) = workers(first)
        first.kill()
        wait(lambda: not Path(f"/proc/{worker}").exists())
    holds[1].unlink()
    assert not (run / "model.tar.gz").exists()
    with agents(tmp_path, 2, "--recover") as running:
        for agent in running:
            assert agent.wait(TIMEOUT) == 0, logs(tmp_path)
    assert (run / "model.tar.gz").exists()

    two = {**experiment, "distributed": {"cuda_devices": [-1, -1]}}
    assert train(two, tmp_path / "two")
    assert_same_end(run, tmp_path / "two" / "run")

    assert train(experiment, tmp_path / "one")
    one = tmp_path / "one" / "run"
    # The last batches of an epoch, of less than a row for each process, are put together.
    num_batches = len(list(run.glob("model_state_e0_b*.th"))) - 1
    assert num_batches > 10
    name = f"model_state_e0_b{num_batches}.th"
    found, expected = (torch.load(each / name, weights_only=True) for each in (run, one))
    for parameter in expected:
        torch.testing.assert_close(found[parameter], expected[parameter], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seen", [["config.json"], []])
def test_a_folder_of_one_machine_only_is_refused(tmp_path, monkeypatch, seen):
    monkeypatch.setattr(torchrun, "_SECONDS_TO_SEE_FILES", 0)
    for name in seen:
        (tmp_path / name).touch()
    store = distributed.HashStore()
    files = ["config.json", "model_state_e0_b4.th"]
    store.set("begun", json.dumps({"experiment": {"trainer": {}}, "files": files}))
    message = f"Expected config.json, model_.* found {''.join(seen) or 'none of them'} on .* share"
    with pytest.raises(ConfigurationError, match=message):
        torchrun._experiment(store, tmp_path)
    for name in files:
        (tmp_path / name).touch()
    assert torchrun._experiment(store, tmp_path).as_dict() == {"trainer": {}}


def test_each_process_of_a_machine_has_its_device(monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert torchrun._device(None) == -1
    assert torchrun._device([-1, -1]) == -1
    for too_few in ([0], 0):
        with pytest.raises(ConfigurationError, match=r"each of the 2 processes .* found \[?0"):
            torchrun._device(too_few)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    assert torchrun._device(None) == 1
    assert torchrun._device([4, 5]) == 5


def test_processes_share_the_cores_of_their_machine(monkeypatch):
    shares = []
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", shares.append)
    PretrainingTrainer._share_cores(SimpleNamespace(_world_size=4))
    assert shares == [4]
