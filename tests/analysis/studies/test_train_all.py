import copy
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import pytest
import torch

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.analysis.studies.checks import check_experiments
from elmo_plugin.analysis.studies.study import read_study
from elmo_plugin.analysis.studies.train_all import train_all
from elmo_plugin.analysis.studies.train_run import RunFailed, folder_of
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from elmo_plugin.util.folder_lock import lock_folder
from tests.waiting import wait_until


def test_a_failure_stops_nothing_else(fake, make_run):
    runs = [make_run(1), make_run(2, fail="never"), make_run(3)]
    started = []
    outcomes = dict(
        (run.seed, outcome)
        for run, outcome in train_all(runs, fake.folder, on_start=started.append)
    )
    assert started == runs and list(outcomes) == [1, 2, 3]
    assert isinstance(outcomes[2], RunFailed)
    assert outcomes[1]["evaluation"] == outcomes[3]["evaluation"] == {"f1": 0.25, "loss": 2.0}


def test_runs_side_by_side_share_the_cores(fake, make_run, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("torch.get_num_threads", lambda: 4)
    go = fake.folder / "go"
    runs = [make_run(seed, wait=str(go)) for seed in (1, 2)]
    with ThreadPoolExecutor(1) as pool:
        outcomes = pool.submit(list, train_all(runs, fake.folder, num_workers=2))
        try:
            # Before either may end.
            wait_until(lambda: len(fake.calls) == 2)
        finally:
            go.touch()
    assert len(outcomes.result()) == 2 and {threads for _, _, threads in fake.calls} == {"2"}


def test_an_interruption_stops_the_runs_and_the_next_call_goes_on(fake, make_run):
    go = fake.folder / "go"
    runs = [make_run(1), *(make_run(seed, wait=str(go)) for seed in (2, 3, 4))]
    outcomes = train_all(runs, fake.folder, num_workers=2)
    next(outcomes)
    wait_until(lambda: fake.commands.count("train") == 3)
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt())
    # A training that goes on would keep its lock.
    for run in runs[:3]:
        lock_folder(folder_of(run, fake.folder)).release()
    assert not folder_of(runs[3], fake.folder).exists()
    go.touch()
    assert len(list(train_all(runs, fake.folder))) == 4
    assert fake.commands.count("train --recover") == 2
    assert fake.commands.count("evaluate") == 4


@lru_cache
def study_of(name):
    return read_study(shipped("fixtures/studies") / f"{name}.jsonnet")


def runs_of(name):
    return copy.deepcopy(study_of(name).runs)


@pytest.mark.parametrize("name", ["table1", "table7"])
def test_what_a_study_trains_can_be_built(name, monkeypatch):
    started = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: started.append("empty"))
    runs = runs_of(name)
    check_experiments(runs, started.append)
    # One run of each cell. No memory of a GPU is kept.
    assert len(started) - 1 == len({(run.row, run.column) for run in runs})
    assert started[-1] == "empty"


def change_optimizer(experiment):
    experiment["trainer"]["optimizer"]["speed"] = 3


def leave_nothing(experiment):
    experiment["dataset_reader"]["fraction"] = 1e-9


def name_readers(experiment):
    experiment["dataset_reader"] = "elmo-ner"
    experiment["validation_dataset_reader"] = "no-such-reader"


@pytest.mark.parametrize(
    "change, message",
    [
        (change_optimizer, ".*speed"),
        (leave_nothing, ".*leaves nothing"),
        (name_readers, ".*no-such-reader"),
    ],
)
def test_what_cannot_be_built_is_found_beforehand(monkeypatch, change, message):
    monkeypatch.setattr(logging.root.manager, "disable", logging.INFO)
    (first, *_) = runs_of("table1")
    change(first.experiment)
    with pytest.raises(ConfigurationError, match=f"NER, fixed vectors, seed 1: {message}"):
        check_experiments([first])
    # What its caller does not log stays so.
    assert logging.root.manager.disable == logging.INFO
