import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import FolderLocked, lock_folder, wait_for_lock


def test_a_lock_is_waited_for_as_long_as_patience_lasts(tmp_path):
    first = lock_folder(tmp_path / "out")
    calls = []

    def lock():
        calls.append(None)
        return lock_folder(tmp_path / "out")

    with pytest.raises(FolderLocked, match="is being written by another process"):
        wait_for_lock(lock, timeout=0.0)
    before = len(calls)
    closer = threading.Timer(0.1, first.release)
    closer.start()
    second = wait_for_lock(lock, timeout=60.0)
    closer.join()
    assert len(calls) > before + 1
    with pytest.raises(FolderLocked):
        lock_folder(tmp_path / "out")
    second.release()


def test_a_child_keeps_the_lock_of_a_killed_parent(tmp_path):
    script = "import os, subprocess, sys; from pathlib import Path\n"
    script += "from elmo_plugin.util.folder_lock import lock_folder\n"
    script += "lock = lock_folder(Path(sys.argv[1]))\n"
    script += "child = subprocess.Popen(['sleep', '60'], pass_fds=[lock.descriptor], stdout=2, "
    script += "preexec_fn=os.getpid)\n"
    script += "print(child.pid, flush=True); os.kill(os.getpid(), 9)"
    command = [sys.executable, "-c", script, tmp_path / "out"]
    child = int(subprocess.run(command, stdout=subprocess.PIPE).stdout)
    with pytest.raises(FolderLocked):
        lock_folder(Path(tmp_path / "out"))
    os.kill(child, 9)
    wait_for_lock(lambda: lock_folder(tmp_path / "out"), timeout=60.0).release()


def test_a_folder_that_may_not_be_written_is_named(tmp_path, monkeypatch):
    def refuse(path, *args):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    lock = tmp_path / "out.unfinished" / "lock"
    message = f"^{tmp_path}/out cannot be written: Permission denied \\({lock}\\).$"
    with pytest.raises(ConfigurationError, match=message):
        lock_folder(tmp_path / "out.unfinished")


def test_a_file_system_without_locks_is_written_without(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    lock_folder(tmp_path / "out").release()
    assert (tmp_path / "out").is_dir()
