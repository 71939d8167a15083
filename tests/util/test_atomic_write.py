import errno
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from elmo_plugin.util.atomic_write import (
    atomic_write,
    check_output,
    remove_abandoned,
    write_json,
    write_json_rows,
)


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with atomic_write(f"{path}/") as unfinished:
        unfinished.write_text("half")
        assert not path.exists()
        unfinished.write_text("whole")
    assert path.read_text() == "whole"
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_exception_the_old_file_is_left_alone(tmp_path, error):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(error), atomic_write(path) as unfinished:
        unfinished.write_text("new")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def raise_error(error):
    raise error


@pytest.mark.parametrize(
    "name, write, filename",
    [
        ("file.txt", lambda unfinished: None, "file.txt"),
        ("file.txt", lambda unfinished: Path(unfinished.parent, "in").read_text(), "in"),
        ("text/file.txt", lambda unfinished: None, "text"),
        ("file.txt", lambda _: raise_error(OSError(errno.ENOSPC, "No space")), "file.txt"),
        ("file.txt", lambda _: raise_error(OSError(errno.ECONNRESET, "Reset")), None),
    ],
    ids=["not written", "input is missing", "folder is a file", "full", "names no file"],
)
def test_an_error_of_the_system_names_the_file(tmp_path, name, write, filename):
    (tmp_path / "text").write_text("")
    with pytest.raises(OSError) as error, atomic_write(tmp_path / name) as unfinished:
        write(unfinished)
    assert error.value.filename == (filename and str(tmp_path / filename))


def test_processes_that_write_the_same_file_do_not_mix(tmp_path, monkeypatch):
    path = tmp_path / "file.txt"
    with atomic_write(path) as first:
        first.write_text("first")
        with monkeypatch.context() as other_process:
            other_process.setattr(os, "getpid", lambda: 0)
            with atomic_write(path) as second:
                second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path):
    (tmp_path / "link").symlink_to("file.txt")
    with atomic_write(tmp_path / "link") as unfinished:
        unfinished.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file.txt").read_text() == "new"
    assert sorted(os.listdir(tmp_path)) == ["file.txt", "link"]


def test_a_pipe_receives_what_is_written(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    check_output(pipe, force=False)
    reader = Thread(target=lambda: received.append(pipe.read_text()), daemon=True)
    reader.start()
    with atomic_write(pipe) as unfinished:
        unfinished.write_text("whole")
    reader.join(60)
    assert received == ["whole"]
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]


def test_rows_of_json_are_on_lines_of_their_own(tmp_path):
    # A file name may have bytes that are not UTF-8.
    content = {
        "title": 'a "name": ü \udcff',
        "rows": [{"name": "one", "x": [1, 2]}, {"name": "two"}],
    }
    write_json_rows(tmp_path / "rows.json", content, "name")
    text = (tmp_path / "rows.json").read_text(encoding="utf-8")
    assert json.loads(text) == content
    assert text.splitlines()[1] == '{"name": "two"}]}' and text.endswith("\n")


@pytest.mark.posix
def test_what_killed_processes_left_is_removed_and_what_running_ones_write_stays(tmp_path):
    process = subprocess.Popen(["sleep", "60"])
    host = f"{socket.gethostname()}-{os.stat('/proc/self/ns/pid').st_ino}"
    kept = [f"a.{process.pid}@{host}.unfinished", f"a.{os.getppid()}@{host}.unfinished"]
    # Of another computer, of other programs, and of work that is continued.
    # A container's process, with another numbering.
    kept += [f"a.{process.pid}@{socket.gethostname()}-1.unfinished", "a.1@elsewhere.unfinished"]
    kept += [f"a@{host}.unfinished", "b.unfinished", "a.7.unfinished"]
    for name in kept:
        (tmp_path / name).touch()
    write_json(tmp_path / "first", 1)
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "first"])
    process.kill()
    process.wait()
    (tmp_path / f"folder.{process.pid}@{host}.unfinished").mkdir()
    # Once per process.
    remove_abandoned.cache_clear()
    write_json(tmp_path / "second", 2)
    assert sorted(os.listdir(tmp_path)) == sorted([*kept[1:], "first", "second"])


@pytest.mark.posix
def test_a_kill_leaves_a_file_that_the_next_process_removes(tmp_path):
    script = "import os, sys; from elmo_plugin.util.atomic_write import atomic_write\n"
    script += "with atomic_write(sys.argv[1]) as path: path.touch(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", script, tmp_path / "file"])
    (left,) = tmp_path.iterdir()
    assert left.name.startswith("file.") and left.name.endswith(".unfinished")
    write_json(tmp_path / "file", 1)
    assert os.listdir(tmp_path) == ["file"]
