import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Iterator

import pytest

from elmo_plugin.analysis.studies.train_run import RunFailed, folder_of, train_run
from elmo_plugin.util.bfloat16 import CPU_HAS_BFLOAT16
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder
from tests.waiting import wait_until


def test_the_score_has_all_that_was_measured(fake, make_run):
    run = make_run()
    score = train_run(run, fake.folder, num_threads=3)
    assert fake.calls == [("train", "False", "3"), ("evaluate", "False", "3")]
    assert score["training"] == {"best_validation_f1": 0.5}
    assert score["history"] == [0.4, 0.5]
    assert score["evaluation"] == {"f1": 0.25, "loss": 2.0}
    assert score["samples"] == {"f1": [0.2, 0.3], "recall": [0.1, 0.1]}
    assert score["group_samples"] == {"f1": [0.1, 0.4]}
    assert score["minutes"] > 0 and score["versions"]["torch"]
    assert score["versions"]["cpu"].endswith(", bfloat16") == CPU_HAS_BFLOAT16
    assert (score["seed"], score["fraction"], score["digest"]) == (1, 1, run.digest)
    # What is done is not done again.
    assert train_run(run, fake.folder) == score and len(fake.calls) == 2


def test_a_file_that_changes_while_a_study_runs_is_noticed(fake, make_run, tmp_path):
    text = tmp_path / "train.txt"
    text.write_text("The owl sleeps .")
    run = make_run(train_data_path=str(text))
    train_run(run, fake.folder)
    text.write_text("The owl sings .")
    with pytest.raises(RunFailed, match="has changed since the study began"):
        train_run(run, tmp_path / "other")
    assert fake.commands == ["train", "evaluate"]


def test_a_score_does_not_name_the_current_folder(fake, make_run, tmp_path, monkeypatch):
    here, weights, other = tmp_path / "here", tmp_path / "here/bilm/w.hdf5", tmp_path / "w.txt"
    weights.parent.mkdir(parents=True)
    weights.write_text("weights")
    other.write_text("other")
    monkeypatch.chdir(here)
    run = make_run(model={"files": [str(weights), str(other)]})
    score = train_run(run, fake.folder)
    assert score["experiment"]["model"] == {"files": ["bilm/w.hdf5", str(other)]}
    assert list(score["files"]) == ["bilm/w.hdf5", str(other)]
    # The training itself has the paths as they were given.
    assert str(weights) in (folder_of(run, fake.folder) / "experiment.json").read_text()


def test_a_failure_shows_the_log_and_the_next_call_goes_on(fake, make_run):
    run = make_run(fail=str(fake.folder / "mended"))
    with pytest.raises(RunFailed, match=r"allennlp train failed \(exit code 3\).*log.txt:") as info:
        train_run(run, fake.folder)
    assert str(info.value).endswith("    epoch 1\n    no such thing")
    (fake.folder / "mended").touch()
    train_run(run, fake.folder)
    assert fake.commands == ["train", "train --recover", "evaluate"]
    # Another run, without a file to evaluate.
    score = train_run(make_run(2, evaluate=None), fake.folder)
    assert fake.commands[3:] == ["train"]
    assert score["evaluation"] is None and score["samples"] is None


def test_a_stopped_run_leaves_no_process(fake, make_run):
    run = make_run(wait=str(fake.folder / "go"))
    config = folder_of(run, fake.folder) / "training/config.json"
    with pytest.raises(RunFailed, match="stopped"):
        train_run(run, fake.folder, should_stop=config.exists)
    # It would keep the lock.
    lock_folder(folder_of(run, fake.folder)).release()
    (fake.folder / "go").touch()
    train_run(run, fake.folder)
    assert fake.commands == ["train", "train --recover", "evaluate"]


def test_two_processes_do_not_train_the_same_run(fake, make_run, monkeypatch):
    run = make_run(wait=str(fake.folder / "go"))
    first = threading.Thread(target=train_run, args=(run, fake.folder), daemon=True)
    first.start()
    wait_until(lambda: fake.calls)
    monkeypatch.setattr("elmo_plugin.analysis.studies.train_run._LOCK_SECONDS", 0)
    with pytest.raises(ConfigurationError, match="being written by another process"):
        train_run(run, fake.folder)
    (fake.folder / "go").touch()
    first.join()
    assert fake.commands == ["train", "evaluate"]


def commands_with(text: str) -> Iterator[str]:
    """As `pgrep -f`, which minimal images lack."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            command = path.read_text(errors="replace")
            if text in command:
                yield command


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it goes on, and keeps the lock")
def test_a_training_ends_with_the_process_that_started_it(fake):
    waiting = str(fake.folder / "never")
    code = f"""
from pathlib import Path
from elmo_plugin.analysis.studies.study import digest_and_files
from elmo_plugin.analysis.studies.study import Run
from elmo_plugin.analysis.studies.train_run import train_run
experiment = {{"wait": {waiting!r}}}
run = Run("NER", "ELMo", 1, 1, None, experiment, digest_and_files(experiment, None)[0])
train_run(run, Path({str(fake.folder)!r}))
"""
    path = os.pathsep.join([os.environ["PYTHONPATH"], os.getcwd()])
    parent = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    try:
        wait_until(lambda: fake.calls)
        (killed,) = (fake.folder / "runs").iterdir()
        assert any(commands_with(str(killed)))
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not any(commands_with(str(killed))))
