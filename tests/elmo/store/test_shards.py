"""Vectors of a folder of texts, by one process and by tasks of a real Ray on this machine."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from elmo_plugin.bilm import load_bilm
from elmo_plugin.elmo.store.dump import DumpOptions, dump_embeddings, finished_dump
from elmo_plugin.elmo.store.shards import dump_shards, dump_shards_with_ray, shard_outputs
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder
from tests.commands import running
from tests.local_ray import local_ray
from tests.waiting import wait_until

run = partial(running.run, "elmo")
failure = partial(running.failure, "elmo")


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in "abc":
        lines = [f"The {name} of line number {number}" for number in range(300)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_gets_a_file_for_each_text(texts, tmp_path, capsys):
    out = tmp_path / "vectors"
    assert run(texts, out, "--all", "--num-workers", "2") is None
    assert sorted(contents(out)) == ["a.txt.hdf5", "b.txt.hdf5", "c.txt.hdf5"]
    run(texts / "b.txt", tmp_path / "alone.hdf5", "--all")
    assert (out / "b.txt.hdf5").read_bytes() == (tmp_path / "alone.hdf5").read_bytes()
    shown = capsys.readouterr()
    assert "MB of vectors to write." in shown.err and "3 of 3: " in shown.err
    assert f"{out}: 3 files." in shown.out


@pytest.mark.parametrize("warm_up", [False, True])
def test_a_file_of_another_warm_up_is_not_taken_for_a_finished_one(tmp_path, warm_up):
    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text("They play\n")
    options = DumpOptions(layers="top")
    dump_embeddings(load_bilm(warm_up=warm_up), text, out, options)
    assert finished_dump(load_bilm(warm_up=warm_up), text, out, options).num_lines == 1
    with pytest.raises(ConfigurationError, match="with other settings: another bilm_options"):
        finished_dump(load_bilm(warm_up=not warm_up), text, out, options)


def test_what_is_finished_is_not_done_again(texts, tmp_path, capsys, monkeypatch):
    out = tmp_path / "vectors"
    run(texts, out, "--top")
    before = contents(out)
    (out / "b.txt.hdf5").unlink()
    capsys.readouterr()
    run(texts, out, "--top")
    assert contents(out) == before
    assert capsys.readouterr().err.count("300 lines (300 of them earlier)") == 2
    (texts / "a.txt").write_text("Another text .\n")
    assert "1 of 3 texts failed" in failure(texts, out, "--top")
    assert "a.txt has changed" in capsys.readouterr().err
    capsys.readouterr()
    run(texts, out, "--top", "--force")
    # All three are written again: 3 + 2 * 1,800 tokens, 32 numbers of 4 bytes.
    assert "0.5 MB of vectors to write." in capsys.readouterr().err
    assert "3 of 3 texts failed" in failure(texts, out, "--all")
    assert "layers top, now all" in capsys.readouterr().err


def test_a_text_that_cannot_be_read_stops_no_other(texts, tmp_path, capsys):
    (texts / "b.txt").write_text("")
    message = failure(texts, tmp_path / "vectors", "--top")
    assert "1 of 3 texts failed" in message
    assert "b.txt is empty" in capsys.readouterr().err
    (texts / "b.txt").write_bytes(b"na\xefve\n")
    assert "1 of 3 texts failed" in failure(texts, tmp_path / "others", "--top")
    assert "expected UTF-8 text" in capsys.readouterr().err
    assert sorted(contents(tmp_path / "others")) == ["a.txt.hdf5", "c.txt.hdf5"]
    outputs = shard_outputs([str(texts / f"{name}.txt") for name in "bc"], tmp_path / "again")
    outcomes = dict(dump_shards(load_bilm(), outputs, DumpOptions(layers="top")))
    assert "expected UTF-8 text" in str(outcomes[str(texts / "b.txt")])
    assert outcomes[str(texts / "c.txt")].num_lines == 300
    assert sorted(contents(tmp_path / "vectors")) == ["a.txt.hdf5", "c.txt.hdf5"]


def test_two_texts_are_not_written_to_one_file():
    with pytest.raises(ConfigurationError, match=r"x/a.txt.gz and y/a.txt would both be written"):
        shard_outputs(["x/a.txt.gz", "y/a.txt"], "out")


def test_tasks_are_for_folders_and_for_cpus(texts, tmp_path):
    out = tmp_path / "vectors"
    assert "--ray needs a folder" in failure(texts / "a.txt", out, "--top", "--ray")
    message = failure(texts, out, "--top", "--ray", "--cuda-device", "0")
    assert "--ray and --num-workers are for CPUs" in message


class SlowBilm:
    """Loads the biLM once a file exists; first writes down in which process."""

    def __init__(self, notes, go):
        self.notes, self.go = notes, go

    def __call__(self):
        from elmo_plugin import load_bilm

        with open(self.notes, "a") as notes:
            notes.write(f"{os.getpid()}\n")
        while not os.path.exists(self.go):
            time.sleep(0.05)
        return load_bilm()


def test_after_the_driver_is_killed_the_next_one_goes_on(texts, tmp_path):
    pytest.importorskip("ray")
    out = tmp_path / "vectors"
    code = "from elmo_plugin.commands.main import main; main()"
    command = [sys.executable, "-c", code, "embed", str(texts), str(out), "--top", "--ray"]
    command += ["--batch-size", "1"]
    driver = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in driver.stderr:
        if line.startswith("1 of 3"):
            break
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    finished = {path: path.stat().st_mtime_ns for path in out.glob("*.hdf5")}
    assert finished
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert len(list(out.iterdir())) == 3
    assert all(path.stat().st_mtime_ns == time for path, time in finished.items())


# Used by the last tests of this file, so that the test above does not start a second Ray beside it.
@pytest.fixture(scope="module")
def cluster():
    with local_ray():
        yield


def test_a_task_whose_worker_is_killed_is_started_again(cluster, texts, tmp_path):
    from elmo_plugin import load_bilm

    notes, go = tmp_path / "notes", tmp_path / "go"
    outputs = shard_outputs([str(texts / "a.txt"), str(texts / "b.txt")], tmp_path / "vectors")
    options = DumpOptions(batch_size=1)

    def kill():
        try:
            wait_until(lambda: notes.exists() and len(notes.read_text().split()) == 2, seconds=300)
            os.kill(int(notes.read_text().split()[0]), signal.SIGKILL)
            # Before the other worker has time for both texts.
            wait_until(lambda: len(notes.read_text().split()) == 3, seconds=300)
        finally:
            go.touch()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = dict(dump_shards_with_ray(SlowBilm(notes, go), outputs, options))
    killer.join()
    assert {summary.num_lines for summary in found.values()} == {300}
    for text, output in outputs.items():
        dump_embeddings(load_bilm(), text, tmp_path / "alone.hdf5", options, force=True)
        assert output.read_bytes() == (tmp_path / "alone.hdf5").read_bytes()


def test_a_task_waits_for_another_process_that_writes_its_file(cluster, texts, tmp_path):
    from elmo_plugin import load_bilm

    outputs = shard_outputs([str(texts / f"{name}.txt") for name in "abc"], tmp_path / "vectors")
    options = DumpOptions(batch_size=1)
    lock = lock_folder(Path(f"{outputs[str(texts / 'a.txt')]}.unfinished"))
    outcomes = dump_shards_with_ray(load_bilm, outputs, options)
    first, second = next(outcomes), next(outcomes)
    lock.release()
    found = dict([first, second, *outcomes])
    assert list(found)[2] == str(texts / "a.txt")
    assert [summary.num_lines for summary in found.values()] == [300] * 3
