"""The file of `elmo embed`: complete or absent, whatever stops its writer."""

import errno
import json
import multiprocessing
import os
import resource
import shutil
import signal
from contextlib import closing

import numpy
import pytest

from elmo_plugin.elmo.dump.dump_file import DumpFile, finished_attributes
from elmo_plugin.elmo.dump.part_file import EmbeddedSentence
from elmo_plugin.util.errors import ConfigurationError
from tests.elmo.dump.reading import SUFFIXES, read, same

SETTINGS = {"layers": "all", "dtype": "float32", "compression": "none"}
NUM_LINES = 6


def vectors_of(line, size=40):
    """Shape `(3, num_tokens, size)`; the first lines have 1, 2 and 3 tokens, the others 3."""
    num_tokens = min(line + 1, 3)
    return numpy.random.default_rng(line).random((3, num_tokens, size), dtype="float32")


def commit(file, line):
    sentence = EmbeddedSentence(str(line), (f"{line}a", "b", "c")[: line + 1], vectors_of(line))
    file.commit(file.writer.write(line + 1, f"digest of {line}", [sentence]))


def write(path, force=False, **settings):
    """Continues after the last commit; one line per commit. Returns how many lines were done."""
    with closing(DumpFile(path, {**SETTINGS, **settings}, force)) as file:
        num_resumed = file.progress["num_lines"]
        for line in range(num_resumed, NUM_LINES):
            commit(file, line)
        file.finish("text.txt", {"a sentence": "0"})
    return num_resumed


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


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    return tmp_path / f"out{request.param}"


def test_a_kill_at_any_disk_operation_loses_no_commit(path):
    alone = path
    write(alone)
    folder = path.parent / "killed"
    path = folder / alone.name
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
        assert os.listdir(folder) == [path.name]
    assert resumed == sorted(resumed) and set(resumed) == set(range(NUM_LINES + 1))
    assert len(resumed) > 4 * NUM_LINES


def test_a_kill_before_the_file_has_its_name_finishes_it(path):
    write(path)
    whole = path.read_bytes()
    folder = unfinished(path)
    folder.mkdir()
    os.replace(path, folder / f"whole{path.suffix}")
    with pytest.raises(ConfigurationError, match="is finished, with 6 lines"):
        write(path)
    assert path.read_bytes() == whole and not folder.exists()


@pytest.mark.parametrize("index", [None, {"a sentence": "0"}])
def test_a_sentence_may_have_the_name_of_the_index(path, index):
    if path.suffix == ".parquet":
        pytest.skip("the words are a column")
    settings = {**SETTINGS, "sentence_keys": index is None}
    name = "sentence_to_index" if index is None else "0"
    with closing(DumpFile(path, settings, force=False)) as file:
        sentence = EmbeddedSentence(name, (name,), vectors_of(0))
        file.commit(file.writer.write(1, "", [sentence]))
        assert file.finish("text.txt", index) == 1
    assert finished_attributes(path)["num_datasets"] == "1"


def test_a_second_process_is_kept_out(path):
    with closing(DumpFile(path, SETTINGS, force=False)) as first:
        for force in (False, True):
            with pytest.raises(ConfigurationError, match="is being written by another process"):
                write(path, force)
        commit(first, 0)
    assert write(path) == 1


def test_nothing_is_left_where_nothing_was_committed(path):
    with closing(DumpFile(path, SETTINGS, force=False)) as file:
        file.writer.write(1, "digest of 0", [EmbeddedSentence("0", ("a",), vectors_of(0))])
    assert os.listdir(path.parent) == []


def unfinished(path):
    return path.with_name(f"{path.name}.unfinished")


def stop_after(path, num_lines, **settings):
    with closing(DumpFile(path, {**SETTINGS, **settings}, force=False)) as file:
        for line in range(num_lines):
            commit(file, line)


def test_only_force_replaces_work_with_other_settings(path):
    stop_after(path, 4, layers="top")
    with pytest.raises(ConfigurationError, match="layers top, now all.*--force"):
        write(path)
    assert write(path, force=True) == 0
    assert read(path)[1]["layers"] == "all"


def test_forced_work_is_continued_too(path):
    write(path)
    with closing(DumpFile(path, {**SETTINGS, "layers": "top"}, force=True)) as file:
        commit(file, 0)
    assert read(path)[1]["layers"] == "all"
    assert write(path, force=True, layers="top") == 1
    assert read(path)[1]["layers"] == "top"


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_full_disk_at_the_end_costs_nothing(path, is_compressed):
    compressions = {".hdf5": "gzip", ".parquet": "zstd"}
    compression = compressions.get(path.suffix, "none") if is_compressed else "none"
    stop_after(path, 4, compression=compression)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Enough for each part, not for all of them together.
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as stopped:
            write(path, compression=compression)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert stopped.value.errno == errno.EFBIG
    assert not path.exists()
    assert not list(unfinished(path).glob("whole*"))
    assert write(path, compression=compression) == NUM_LINES
    found, attributes = read(path)
    assert same(found, {str(line): vectors_of(line) for line in range(NUM_LINES)})
    assert attributes["complete"] == "True" and attributes["num_lines"] == str(NUM_LINES)


@pytest.mark.parametrize("num_bytes", [5, 300, 1500])
def test_a_damaged_part_is_named(path, num_bytes):
    stop_after(path, 4)
    part = unfinished(path) / "000000000004.part"
    os.truncate(part, num_bytes)
    with pytest.raises(ConfigurationError, match=rf"{part} is damaged.*Delete its folder"):
        write(path)


def test_parts_of_an_earlier_version_are_named(path):
    stop_after(path, 1)
    (part,) = unfinished(path).glob("*.part")
    progress, ((name, shape, _),) = json.loads(part.read_bytes().partition(b"\n")[0])
    part.write_text(f"{json.dumps([progress, [(name, shape)]])}\n")
    with pytest.raises(ConfigurationError, match=rf"{part} is damaged.*Delete its folder"):
        write(path)


def test_a_link_stays_and_the_file_that_it_names_is_written(path):
    # The ending of the link is the format.
    path.symlink_to("other/vectors")
    stop_after(path, 4)
    assert write(path) == 4
    assert path.is_symlink() and read(path)[1]["complete"] == "True"
    assert os.listdir(path.parent / "other") == ["vectors"]
    assert set(os.listdir(path.parent)) == {path.name, "other"}


def test_a_pipe_is_refused_and_stays(path):
    os.mkfifo(path)
    with pytest.raises(ConfigurationError, match="is a pipe or device; expected the name of"):
        write(path, force=True)
    assert path.is_fifo() and os.listdir(path.parent) == [path.name]


def test_a_file_that_something_else_wrote_is_not_taken_for_a_finished_one(path):
    for content in (b"", b"junk", b"\0" * 100):
        path.write_bytes(content)
        assert finished_attributes(path) is None
        with pytest.raises(ConfigurationError, match=f"{path} exists. Add --force"):
            write(path)
    write(path, force=True)
    assert finished_attributes(path)["num_datasets"] == str(NUM_LINES)
