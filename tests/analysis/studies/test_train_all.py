from concurrent.futures import ThreadPoolExecutor

import pytest

from elmo_plugin.analysis.studies.train_run import RunFailed, folder_of, train_all
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
