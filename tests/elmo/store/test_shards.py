"""Vectors of a folder of texts, by one process and by tasks of a real Ray on this machine."""

import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from elmo_plugin.bilm import load_bilm
from elmo_plugin.elmo.store.dump import DumpOptions, dump_embeddings, finished_dump
from elmo_plugin.elmo.store.shards import dump_shards_with_ray, shard_outputs
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder
from elmo_plugin.util.text_files import DecodedPath
from tests.commands import running

run = partial(running.run, "elmo-embed")
failure = partial(running.failure, "elmo-embed")


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
    assert run(texts, out, "--all") is None
    assert sorted(contents(out)) == ["a.txt.hdf5", "b.txt.hdf5", "c.txt.hdf5"]
    run(texts / "b.txt", tmp_path / "alone.hdf5", "--all")
    assert (out / "b.txt.hdf5").read_bytes() == (tmp_path / "alone.hdf5").read_bytes()
    shown = capsys.readouterr()
    assert "MB of vectors to write." in shown.err and "3 of 3: " in shown.err
    assert f"{out}: 3 files." in shown.out


def test_a_file_of_another_warm_up_is_not_taken_for_a_finished_one(tmp_path):
    text, out = tmp_path / "text.txt", tmp_path / "out.hdf5"
    text.write_text("They play\n")
    options = DumpOptions(layers="top")
    dump_embeddings(load_bilm(warm_up=True), text, out, options)
    assert finished_dump(load_bilm(warm_up=True), text, out, options).num_lines == 1
    with pytest.raises(ConfigurationError, match="with other settings: another bilm_options"):
        finished_dump(load_bilm(), text, out, options)


def test_a_text_that_cannot_be_read_stops_no_other(texts, tmp_path, capsys):
    (texts / "b.txt").write_text("")
    message = failure(texts, tmp_path / "vectors", "--top")
    assert "1 of 3 texts failed" in message
    assert "b.txt is empty" in capsys.readouterr().err
    (texts / "b.txt").write_bytes(b"na\xefve\n")
    assert "1 of 3 texts failed" in failure(texts, tmp_path / "others", "--top")
    assert "expected UTF-8 text" in capsys.readouterr().err
    assert sorted(contents(tmp_path / "others")) == ["a.txt.hdf5", "c.txt.hdf5"]
    assert sorted(contents(tmp_path / "vectors")) == ["a.txt.hdf5", "c.txt.hdf5"]


def test_two_texts_are_not_written_to_one_file():
    with pytest.raises(ConfigurationError, match=r"x/a.txt.gz and y/a.txt would both be written"):
        shard_outputs(["x/a.txt.gz", "y/a.txt"], "out")


def test_tasks_are_for_folders_and_for_cpus(texts, tmp_path):
    out = tmp_path / "vectors"
    assert "--ray needs a folder" in failure(texts / "a.txt", out, "--top", "--ray")
    message = failure(texts, out, "--top", "--ray", "--cuda-device", "0")
    assert "--ray and --num-workers are for CPUs" in message


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


def test_a_task_splits_raw_text_and_waits_for_another_process(texts, tmp_path):
    ray = pytest.importorskip("ray")
    (texts / "b.txt").write_text("Sie spielten z.B. Schach, nicht Dame.\n" * 300)
    raw = [DecodedPath(str(path), "strict", "de") for path in sorted(texts.iterdir())]
    outputs = shard_outputs(raw, tmp_path / "vectors")
    options = DumpOptions(batch_size=1)
    lock = lock_folder(Path(f"{outputs[raw[0]]}.unfinished"))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        outcomes = dump_shards_with_ray(load_bilm, outputs, options)
        first, second = next(outcomes), next(outcomes)
        lock.release()
        found = dict([first, second, *outcomes])
    finally:
        ray.shutdown()
    assert list(found)[2] == raw[0] and found[raw[1]].num_tokens == 300 * 8
    for text, output in outputs.items():
        assert found[text].num_lines == 300
        dump_embeddings(load_bilm(), text, tmp_path / "alone.hdf5", options, force=True)
        assert output.read_bytes() == (tmp_path / "alone.hdf5").read_bytes()
