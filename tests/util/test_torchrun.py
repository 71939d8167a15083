import threading

import pytest
from torch import distributed

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.torchrun import ProcessRanks, rendezvous, torchrun_ranks, wait_for


def test_keys_of_dead_processes_in_the_store_are_ignored():
    store = distributed.HashStore()
    store.set("here/1", "dead")
    store.set("start/dead", "old")
    starts = {}

    def arrive(rank):
        starts[rank] = rendezvous(store, ProcessRanks(rank, 3, 0, 1))
        starts[rank].set(f"arrived {rank}", "")

    threads = [threading.Thread(target=arrive, args=(rank,), daemon=True) for rank in (0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(wait_for(starts[0], f"arrived {rank}") == b"" for rank in range(3))


def test_without_torchrun_there_is_no_place(monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setenv("RANK", "1")
    assert torchrun_ranks() is None


def test_a_part_of_the_variables_is_refused(monkeypatch):
    for name, value in (("TORCHELASTIC_RUN_ID", "none"), ("RANK", "1"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)
    for name in ("WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="found no WORLD_SIZE, .*, MASTER_ADDR. Start"):
        torchrun_ranks()
