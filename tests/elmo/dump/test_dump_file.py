"""The file of `allennlp elmo`: complete or absent, whatever stops its writer."""

import multiprocessing
import os
import resource
import shutil
import signal
from contextlib import closing

import h5py
import numpy
import pytest

from elmo_plugin.elmo.dump.dump_file import DumpFile
from elmo_plugin.util.errors import ConfigurationError

SETTINGS = {"layers": "all", "dtype": "float32", "compression": "none"}
NUM_LINES = 6


def vectors_of(line, size=40):
    return numpy.random.default_rng(line).random((3, line, size), dtype="float32")


def commit(file, line):
    datasets = [(str(line), vectors_of(line))]
    file.commit(file.writer.write(line + 1, f"digest of {line}", datasets))


def write(path, force=False, **settings):
    """Continues after the last commit; one line per commit. Returns how many lines were done."""
    with closing(DumpFile(path, {**SETTINGS, **settings}, force)) as file:
        num_resumed = file.progress["num_lines"]
        for line in range(num_resumed, NUM_LINES):
            commit(file, line)
        file.finish("text.txt", {"a sentence": "0"})
    return num_resumed


def content(path):
    with h5py.File(path) as file:
        return {key: file[key][()].tolist() for key in file}, dict(file.attrs)


def kill_at(operation, path):
    """In a process of its own: what `write` does until that disk operation, then `kill -9`."""
    count = 0

    def counted(whole):
        def call(*arguments, **settings):
            nonlocal count
            count += 1
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(*arguments, **settings)

        return call

    for name in ("open", "mkdir", "fsync", "replace", "posix_fallocate", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    write(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.hdf5"


def test_a_kill_at_any_disk_operation_loses_no_commit(tmp_path):
    alone = tmp_path / "alone.hdf5"
    write(alone)
    folder = tmp_path / "killed"
    path = folder / "out.hdf5"
    fork = multiprocessing.get_context("fork")
    resumed = []
    exit_code = -signal.SIGKILL
    while exit_code:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        process = fork.Process(target=kill_at, args=(len(resumed) + 1, path))
        process.start()
        process.join()
        exit_code = process.exitcode
        assert exit_code in (0, -signal.SIGKILL)
        try:
            resumed.append(write(path))
        except ConfigurationError as error:
            # Only the renaming and the clearing up were left to do.
            assert "is finished, with 6 lines" in str(error)
            resumed.append(NUM_LINES)
        assert path.read_bytes() == alone.read_bytes()
        assert os.listdir(folder) == ["out.hdf5"]
    assert resumed == sorted(resumed) and set(resumed) == set(range(NUM_LINES + 1))
    assert len(resumed) > 4 * NUM_LINES


def test_a_kill_before_the_file_has_its_name_finishes_it(path):
    write(path)
    whole = path.read_bytes()
    folder = path.with_name("out.hdf5.unfinished")
    folder.mkdir()
    os.replace(path, folder / "whole.hdf5")
    with pytest.raises(ConfigurationError, match="is finished, with 6 lines"):
        write(path)
    assert path.read_bytes() == whole and not folder.exists()


def test_a_second_process_is_kept_out(path):
    with closing(DumpFile(path, SETTINGS, force=False)) as first:
        for force in (False, True):
            with pytest.raises(ConfigurationError, match="is being written by another process"):
                write(path, force)
        commit(first, 0)
    assert write(path) == 1


def test_nothing_is_left_where_nothing_was_committed(path):
    with closing(DumpFile(path, SETTINGS, force=False)) as file:
        file.writer.write(1, "digest of 0", [("0", vectors_of(0))])
    assert os.listdir(path.parent) == []


def stop_after(path, num_lines, **settings):
    with closing(DumpFile(path, {**SETTINGS, **settings}, force=False)) as file:
        for line in range(num_lines):
            commit(file, line)


def test_only_force_replaces_work_with_other_settings(path):
    stop_after(path, 4, layers="top")
    with pytest.raises(ConfigurationError, match="layers top, now all.*--force"):
        write(path)
    assert write(path, force=True) == 0
    assert content(path)[1]["layers"] == "all"


def test_forced_work_is_continued_too(path):
    write(path)
    with closing(DumpFile(path, {**SETTINGS, "layers": "top"}, force=True)) as file:
        commit(file, 0)
    assert content(path)[1]["layers"] == "all"
    assert write(path, force=True, layers="top") == 1
    assert content(path)[1]["layers"] == "top"


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_full_disk_at_the_end_costs_nothing(path, compression):
    stop_after(path, 4, compression=compression)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Enough for each part, not for all of them together.
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write(path, compression=compression)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not path.exists()
    assert not list(path.with_name("out.hdf5.unfinished").glob("whole*"))
    assert write(path, compression=compression) == NUM_LINES
    found, attributes = content(path)
    expected = {str(line): vectors_of(line).tolist() for line in range(NUM_LINES)}
    assert {key: found[key] for key in expected} == expected
    assert attributes["complete"] and attributes["num_lines"] == NUM_LINES


@pytest.mark.parametrize("num_bytes", [5, 300, 1500])
def test_a_damaged_part_is_named(path, num_bytes):
    stop_after(path, 4)
    part = path.with_name("out.hdf5.unfinished") / "000000000004.part"
    os.truncate(part, num_bytes)
    with pytest.raises(ConfigurationError, match=rf"{part} is damaged.*Delete its folder"):
        write(path)


def test_hdf5_never_needs_more_space_than_is_reserved(path, monkeypatch):
    reserved = []
    allocate = os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", lambda *a: reserved.append(a[2]) or allocate(*a))
    generator = numpy.random.default_rng(0)
    for compression in ("none", "gzip", "lzf"):
        for num_tokens, name in ((0, ""), (1, ""), (3, "name " * 500), (1100, "")):
            settings = {**SETTINGS, "compression": compression}
            with closing(DumpFile(path, settings, force=True)) as file:
                datasets = []
                for number in range(400 if num_tokens < 4 else 3):
                    # Random bytes, which no filter can make smaller.
                    data = generator.bytes(2 * num_tokens * 8 * 4)
                    vectors = numpy.frombuffer(data, "float32").reshape(2, num_tokens, 8)
                    datasets.append((f"{name}{number}", vectors))
                file.commit(file.writer.write(1, "", datasets))
                file.finish("text.txt", {f"{name}{number}": str(number) for number in range(400)})
            assert path.stat().st_size < reserved.pop() and not reserved
