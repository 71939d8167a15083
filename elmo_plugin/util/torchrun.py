"""The processes that `torchrun` starts, on one machine or several."""

import os
import time
import uuid
from typing import NamedTuple, Optional

from torch import distributed

# Seconds between two checks of a store. `Store.wait` would delay signals and has a time limit.
_INTERVAL = 0.2


class ProcessRanks(NamedTuple):
    """The environment variables that `torchrun` gives each process, in lower case."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int


def torchrun_ranks() -> Optional[ProcessRanks]:
    """The ranks that `torchrun` gave this process; `None` if it was started otherwise."""
    if not distributed.is_torchelastic_launched():
        return None
    return ProcessRanks(*(int(os.environ[name.upper()]) for name in ProcessRanks._fields))


def rendezvous(store: distributed.Store, ranks: ProcessRanks) -> distributed.Store:
    """
    Waits for all processes. Returns a part of the store that is new in each start of the processes:
    `torchrun` keeps the store when it starts them again, so the rest may contain keys of dead
    processes, such as their addresses.
    """
    mine = uuid.uuid4().hex
    if ranks.rank:
        store.set(f"here/{ranks.rank}", mine)
        start = wait_for(store, f"start/{mine}").decode()
        store.set(f"{start}/{ranks.rank}", "")
        return distributed.PrefixStore(start, store)
    others = range(1, ranks.world_size)
    while not all(store.check([f"{mine}/{rank}"]) for rank in others):
        for rank in others:
            # The key may be of a dead process: nobody reads that answer.
            if store.check([f"here/{rank}"]):
                store.set("start/" + store.get(f"here/{rank}").decode(), mine)
        time.sleep(_INTERVAL)
    return distributed.PrefixStore(mine, store)


def wait_for(store: distributed.Store, key: str) -> bytes:
    """The value of a key, as soon as a process has set it."""
    while not store.check([key]):
        time.sleep(_INTERVAL)
    return store.get(key)
