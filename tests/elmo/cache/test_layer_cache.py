"""The cache on disk: shared by processes, not damaged by a kill, and never wrong."""

import multiprocessing
import os
import random
import shutil
from collections import namedtuple
from pathlib import Path

import numpy
import pytest
import torch

from elmo_plugin.elmo.cache import layer_cache as module
from elmo_plugin.elmo.cache.frozen_layers import FrozenLayers
from elmo_plugin.elmo.cache.layer_cache import LayerCache, entry_width

WIDTH = 640
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
Disk = namedtuple("Disk", "total used free")


def entry(number):
    """Key and layers of an invented sentence with that number."""
    generator = numpy.random.default_rng(number)
    layers = generator.standard_normal((3 + number % 40, WIDTH)).astype(numpy.float16)
    return number.to_bytes(16, "little"), layers


def fill(cache, numbers):
    for number in numbers:
        cache.write([entry(number)])


def right_entries(cache, numbers):
    """The number of entries found; fails if one is wrong."""
    keys = [entry(number)[0] for number in numbers]
    found = 0
    for key, layers in cache.read(keys):
        assert numpy.array_equal(layers, entry(int.from_bytes(key, "little"))[1])
        found += 1
    return found


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def reopen(path):
    """Opens the store again, as a new process would; entries not written before are lost."""
    opened = []

    def open_again(path=path):
        while opened:
            opened.pop()._environment.close()
        opened.append(LayerCache(path, WIDTH))
        return opened[-1]

    yield open_again
    while opened:
        opened.pop()._environment.close()


def test_entries_come_back_bit_for_bit_before_and_after_they_are_written(reopen):
    cache = reopen()
    fill(cache, range(100))
    assert right_entries(cache, range(200)) == 100
    cache.flush()
    assert right_entries(cache, range(200)) == 100
    assert right_entries(reopen(), range(200)) == 100


def test_entries_are_written_in_groups_of_whole_batches(reopen, monkeypatch):
    monkeypatch.setattr(module, "_MAX_PENDING_BYTES", 100_000)
    cache = reopen()
    for first in range(0, 100, 10):
        cache.write([entry(number) for number in range(first, first + 10)])
    found = right_entries(reopen(), range(100))
    assert 80 <= found <= 100 and found % 10 == 0


def _write_forever(path, progress):
    cache = LayerCache(path, WIDTH)
    for number in range(10_000_000):
        cache.write([entry(number)])
        if number % 7 == 0:
            cache.flush()
            progress.send(number)


def test_a_killed_writer_loses_only_entries_in_memory(path, reopen):
    generator = random.Random(0)
    for _ in range(4):
        receiver, sender = PROCESSES.Pipe(duplex=False)
        writer = PROCESSES.Process(target=_write_forever, args=(path, sender))
        writer.start()
        written = -1
        for _ in range(generator.randrange(1, 40)):
            assert receiver.poll(60)
            written = receiver.recv()
        writer.kill()
        writer.join()
        assert right_entries(reopen(), range(written + 1)) == written + 1
        shutil.rmtree(path)


def _write_some(path, numbers, barrier):
    barrier.wait()
    cache = LayerCache(path, WIDTH)
    for number in numbers:
        cache.write([entry(number)])
        if number % 5 == 0:
            cache.flush()
            assert right_entries(cache, numbers[: numbers.index(number) + 1])
    cache.flush()


def test_several_processes_share_it(path, reopen):
    barrier = PROCESSES.Barrier(3)
    # Some are written by two.
    shares = [list(range(0, 60)), list(range(40, 100)), list(range(90, 150))]
    processes = [
        PROCESSES.Process(target=_write_some, args=(path, share, barrier)) for share in shares
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert right_entries(reopen(), range(150)) == 150


@pytest.mark.posix
def test_a_forked_child_leaves_the_store_alone(path, reopen, monkeypatch):
    cache = reopen()
    monkeypatch.setitem(LayerCache._opened, path, cache)
    fill(cache, range(5))
    cache.flush()
    fill(cache, range(5, 10))
    child = os.fork()
    if child == 0:
        fill(cache, range(10, 15))
        cache.flush()
        os._exit(right_entries(cache, range(15)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert right_entries(cache, range(15)) == 10


def test_a_full_disk_stops_writing_with_one_warning(reopen, monkeypatch, caplog):
    cache = reopen()
    fill(cache, range(5))
    cache.flush()
    full = Disk(total=100 * 2**30, used=91 * 2**30, free=9 * 2**30)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda path: full)
    fill(cache, range(5, 10))
    cache.flush()
    fill(cache, range(10, 20))
    cache.flush()
    (message,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert "the disk has 9,216 MB free, and 10,240 MB must stay free" in message
    assert "ELMO_CACHE" in message and not cache._pending
    assert right_entries(cache, range(20)) == 5


def test_a_folder_deleted_while_open_loses_only_its_entries(path, reopen, caplog):
    cache = reopen()
    fill(cache, range(5))
    cache.flush()
    shutil.rmtree(path)
    fill(cache, range(5, 10))
    cache.flush()
    (message,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert "does not grow any more" in message
    assert right_entries(cache, range(10)) == 5
    assert right_entries(reopen(), range(10)) == 0


@pytest.mark.parametrize("place", ["file", "circle/of/links", "~nosuchuser/cache"])
def test_without_a_usable_cache_layers_are_computed_and_one_warning_is_logged(
    bilm, sentences, tmp_path, caplog, monkeypatch, place
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / "circle").symlink_to("circle")
    frozen = FrozenLayers(bilm, Path(place))
    ids = bilm.characters.batch_ids(sentences)
    for _ in range(2):
        torch.testing.assert_close(frozen(ids).layers, bilm(ids).layers, rtol=1e-4, atol=1e-5)
    (message,) = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert f"cache in {place} cannot be opened" in message
    assert "Choose a folder in which you may write" in message


def test_an_entry_is_as_large_as_documented(make_bilm):
    bilm = make_bilm(projection_dim=128)
    assert entry_width(bilm) * 2 == 1280
