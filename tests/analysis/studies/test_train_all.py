import threading
import time

import pytest

from elmo_plugin.analysis.studies.train_all import train_all
from elmo_plugin.analysis.studies.train_run import RunFailed


def test_a_failure_stops_nothing_else(fake, make_run):
    runs = [make_run(1), make_run(2, fail="never"), make_run(3)]
    started = []
    outcomes = dict(
        (run.seed, outcome)
        for run, outcome in train_all(runs, fake.folder, ["f1"], on_start=started.append)
    )
    assert started == runs and list(outcomes) == [1, 2, 3]
    assert isinstance(outcomes[2], RunFailed)
    assert outcomes[1]["evaluation"] == outcomes[3]["evaluation"] == {"f1": 0.25, "loss": 2.0}


def test_runs_side_by_side_share_the_cores(fake, make_run, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    go = fake.folder / "go"
    runs = [make_run(seed, wait=str(go)) for seed in (1, 2)]

    def release():
        while len(fake.calls) < 2:
            time.sleep(0.05)
        go.touch()

    # Only if both have begun does either end.
    threading.Thread(target=release).start()
    outcomes = list(train_all(runs, fake.folder, ["f1"], num_workers=2))
    assert len(outcomes) == 2 and {threads for _, _, threads in fake.calls} == {"2"}


def test_an_interruption_stops_the_runs_and_the_next_call_goes_on(fake, make_run):
    go = fake.folder / "go"
    runs = [make_run(1), *(make_run(seed, wait=str(go)) for seed in (2, 3, 4))]
    outcomes = train_all(runs, fake.folder, ["f1"], num_workers=2)
    next(outcomes)
    while fake.commands.count("train") < 3:
        time.sleep(0.05)
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt())
    begun = fake.commands
    time.sleep(1.0)
    assert fake.commands == begun
    go.touch()
    assert len(list(train_all(runs, fake.folder, ["f1"]))) == 4
    assert fake.commands.count("train --recover") == 2
    assert fake.commands.count("evaluate") == 4
