import threading

from torch import distributed

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
