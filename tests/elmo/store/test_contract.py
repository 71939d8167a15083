"""What all uses of the store promise, whatever stops their writer."""

import errno
import multiprocessing
import os
import shutil
import signal
from contextlib import closing, contextmanager

import numpy
import pytest

from elmo_plugin.analysis.context_index import IndexWriter
from elmo_plugin.elmo.store.dump import DumpFile
from elmo_plugin.elmo.store.formats import format_of
from elmo_plugin.elmo.store.rows import ResumableText, Store
from elmo_plugin.elmo.store.sentence_vectors import EmbeddedSentence
from elmo_plugin.util.atomic_write import remove_abandoned
from elmo_plugin.util.errors import ConfigurationError
from tests.elmo.store.reading import read, same

NUM_LINES = 4
SETTINGS = {"batch_size": 1, "dtype": "float32", "compression": "none", "layers": "all"}


def vectors_of(line, size=40):
    """Shape `(3, num_tokens, size)`; the first lines have 1, 2 and 3 tokens, the others 3."""
    num_tokens = min(line + 1, 3)
    return numpy.random.default_rng(line).random((3, num_tokens, size), dtype="float32")


class Index:
    name, rows = "index", "layer_0.npy"

    def open(self, path, settings, force):
        return IndexWriter(path, {**settings, "layers": [0, 1, 2], "dim": 40}, force)

    def add(self, index, line):
        words = ["a", "b", "c"][: line + 1]
        index.add(line + 1, words, vectors_of(line))
        is_last = line + 1 == NUM_LINES
        index.commit(num_lines=line + 1, text_sha256=f"digest of {line}", complete=is_last)

    def done(self, index):
        return index.state["num_lines"]

    def finish(self, index):
        pass


class Text(Index):
    name, rows = "scores.tsv", "lines"

    def open(self, path, settings, force):
        return ResumableText(path, settings, force)

    def add(self, text, line):
        text.add(f"line {line}\n" * (line + 1) * 20, {"num_lines": line + 1})

    def done(self, text):
        return text.state["progress"].get("num_lines", 0)

    def finish(self, text):
        text.export()


class Dump(Index):
    def __init__(self, suffix):
        self.name, self.rows = f"out{suffix}", "vectors"

    def open(self, path, settings, force):
        return DumpFile(path, settings, force)

    def add(self, dump, line):
        sentence = EmbeddedSentence(str(line), (f"{line}a", "b", "c")[: line + 1], vectors_of(line))
        dump.add([sentence], {"num_lines": line + 1, "text_sha256": f"digest of {line}"})

    def finish(self, dump):
        dump.export("text.txt")


FILES = [Text(), *map(Dump, (".hdf5", ".safetensors", ".parquet"))]
USES = [Index(), *FILES]


@pytest.fixture(params=USES, ids=lambda use: use.name)
def use(request):
    return request.param


@pytest.fixture
def path(use, tmp_path):
    return tmp_path / "new" / use.name


def write(use, path, stop=NUM_LINES, force=False, **settings):
    """Continues after the last commit, one line per commit. Returns how many lines were done."""
    with closing(use.open(path, {**SETTINGS, **settings}, force)) as writer:
        num_resumed = use.done(writer)
        for line in range(num_resumed, stop):
            use.add(writer, line)
        if stop == NUM_LINES:
            use.finish(writer)
    return num_resumed


def content(folder):
    """Of all files below a folder."""
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def rows_of(use, path):
    """The file of rows before the end."""
    folder = path.with_name(f"{path.name}.unfinished")
    return (folder if use in FILES else path) / use.rows


@contextmanager
def limited_files(num_bytes):
    """As on a disk that is full when a file has this size."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def kill_at(operation, use, path):
    """In a process of its own: what `write` does until that operation, then `kill -9`."""
    count = 0

    def counted(whole):
        def call(*arguments, **settings):
            nonlocal count
            count += 1
            if count == operation:
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(*arguments, **settings)

        return call

    def append_at_once(self, name, rows):
        append(self, name, rows)
        self._opened[name].flush()

    append = Store.append
    Store.append = counted(append_at_once)
    for name in ("open", "mkdir", "fsync", "replace", "posix_fallocate", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    write(use, path)


@pytest.mark.posix
def test_a_kill_at_any_operation_loses_no_commit(use, path, tmp_path, monkeypatch):
    # Only a power cut needs it, and it is slow.
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    write(use, tmp_path / "alone" / use.name)
    expected = content(tmp_path / "alone")
    fork = multiprocessing.get_context("fork")
    resumed = []
    exit_code = -signal.SIGKILL
    while exit_code:
        shutil.rmtree(path.parent, ignore_errors=True)
        process = fork.Process(target=kill_at, args=(len(resumed) + 1, use, path))
        process.start()
        process.join()
        exit_code = process.exitcode
        assert exit_code in (0, -signal.SIGKILL)
        # Of which a new process knows nothing.
        remove_abandoned.cache_clear()
        try:
            resumed.append(write(use, path))
        except ConfigurationError as error:
            # Only the renaming and the clearing up were left to do.
            assert "exists. Give --force" in str(error) and use in FILES
            resumed.append(NUM_LINES)
        assert content(path.parent) == expected, len(resumed)
    assert resumed == sorted(resumed) and set(resumed) == set(range(NUM_LINES + 1))
    assert len(resumed) > 20


def test_a_full_disk_costs_nothing_done(use, path, tmp_path):
    write(use, path, stop=2)
    with limited_files(rows_of(use, path).stat().st_size + 100):
        with pytest.raises(OSError, match="File too large") as stopped:
            write(use, path)
    assert stopped.value.errno == errno.EFBIG
    assert write(use, path) == 2
    write(use, tmp_path / "alone" / use.name)
    assert content(path.parent) == content(tmp_path / "alone")


def test_only_the_same_settings_continue_unless_forced(use, path, tmp_path):
    write(use, path, stop=3, batch_size=2)
    with pytest.raises(ConfigurationError, match="batch_size 2, now 1. Repeat.*--force"):
        write(use, path)
    assert write(use, path, force=True) == 0
    write(use, tmp_path / "alone" / use.name)
    assert content(path.parent) == content(tmp_path / "alone")


def test_rows_that_were_lost_are_damage(use, path):
    write(use, path, stop=3)
    rows = rows_of(use, path)
    os.truncate(rows, rows.stat().st_size - 1)
    with pytest.raises(ConfigurationError, match=f"{rows.name} is missing or too short. Delete it"):
        write(use, path)
    rows.unlink()
    with pytest.raises(ConfigurationError, match=f"{rows.parent} is damaged"):
        write(use, path)
    (state,) = rows.parent.glob("*.json")
    state.write_text('{"batch_size"')
    with pytest.raises(ConfigurationError, match=f"{state.name} cannot be read"):
        write(use, path)


def test_a_second_process_is_kept_out(use, path):
    with closing(use.open(path, SETTINGS, False)) as first:
        for force in (False, True):
            with pytest.raises(ConfigurationError, match="is being written by another process"):
                write(use, path, force=force)
        use.add(first, 0)
    assert write(use, path) == 1


def test_nothing_is_left_where_nothing_was_committed(use, path):
    use.open(path, SETTINGS, False).close()
    assert list(path.parent.iterdir()) == []


def test_other_files_are_neither_replaced_nor_continued(use, path):
    folder = rows_of(use, path).parent
    folder.mkdir(parents=True)
    # Of an earlier version.
    (folder / "000000000001.part").write_text("part")
    (folder / "lock").write_text("not ours")
    for force in (False, True):
        with pytest.raises(ConfigurationError, match=r"holds other files \(0{11}1.part\)"):
            write(use, path, force=force)
    assert sorted(os.listdir(folder)) == ["000000000001.part", "lock"]
    assert (folder / "lock").read_text() == "not ours"


@pytest.fixture(params=FILES, ids=lambda use: use.name)
def file(request):
    return request.param


def test_a_file_is_replaced_only_by_force(file, tmp_path):
    path = tmp_path / file.name
    write(file, path)
    before = content(tmp_path)
    with pytest.raises(ConfigurationError, match=f"{path} exists. Give --force"):
        write(file, path, batch_size=2)
    assert write(file, path, stop=1, force=True) == 0
    assert path.read_bytes() == before[path.name]
    # Forced work is continued, too.
    assert write(file, path, force=True) == 1
    assert content(tmp_path) == before


def test_a_link_stays_and_the_file_that_it_names_is_written(file, tmp_path):
    # The suffix of the link is the format.
    path = tmp_path / file.name
    path.symlink_to("other/vectors")
    write(file, path, stop=3)
    assert write(file, path) == 3
    assert path.is_symlink()
    assert sorted(content(tmp_path)) == ["other/vectors", path.name]
    write(file, tmp_path / "alone" / file.name)
    assert path.read_bytes() == (tmp_path / "alone" / file.name).read_bytes()


@pytest.mark.parametrize("suffix, compression", [(".hdf5", "gzip"), (".parquet", "zstd")])
def test_a_full_disk_at_the_end_costs_nothing(tmp_path, suffix, compression):
    dump, path = Dump(suffix), tmp_path / f"out{suffix}"
    with closing(dump.open(path, {**SETTINGS, "compression": compression}, False)) as file:
        for line in range(NUM_LINES):
            dump.add(file, line)
        with limited_files(4_000), pytest.raises(OSError, match="File too large"):
            dump.finish(file)
    assert not path.exists()
    assert sorted(os.listdir(f"{path}.unfinished")) == ["progress.json", "sentences", "vectors"]
    assert write(dump, path, compression=compression) == NUM_LINES
    found, attributes = read(path)
    assert same(found, {str(line): vectors_of(line) for line in range(NUM_LINES)})
    assert attributes["complete"] == "True" and attributes["num_lines"] == str(NUM_LINES)


@pytest.mark.parametrize("dump", FILES[1:], ids=lambda dump: dump.name)
def test_a_file_that_something_else_wrote_is_not_taken_for_a_finished_one(dump, tmp_path):
    path = tmp_path / dump.name
    for junk in (b"", b"junk", b"\0" * 100):
        path.write_bytes(junk)
        assert format_of(path).read_attributes(path) == {}
    write(dump, path, force=True)
    assert str(format_of(path).read_attributes(path)["complete"]) == "True"


@pytest.mark.posix
@pytest.mark.parametrize("compression", ["none", "gzip", "lzf"])
def test_hdf5_never_needs_more_space_than_is_reserved(tmp_path, monkeypatch, compression):
    path = tmp_path / "out.hdf5"
    reserved = []
    allocate = os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", lambda *a: reserved.append(a[2]) or allocate(*a))
    generator = numpy.random.default_rng(0)
    for num_tokens, name in ((0, ""), (1, ""), (3, "name " * 500), (1100, "")):
        sentences = []
        for number in range(400 if num_tokens < 4 else 3):
            # Random bytes, which no filter can make smaller.
            data = generator.bytes(2 * num_tokens * 8 * 4)
            vectors = numpy.frombuffer(data, "float32").reshape(2, num_tokens, 8)
            words = (f"{name}{number}",)
            sentences.append(EmbeddedSentence(words[0], words, vectors))
        with closing(DumpFile(path, {**SETTINGS, "compression": compression}, True)) as file:
            file.add(sentences, {"num_lines": 1, "text_sha256": ""})
            file.export("text.txt")
        assert path.stat().st_size < reserved.pop() and not reserved
