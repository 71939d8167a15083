"""Runs a function in two processes that `torch.distributed` connects."""

from pathlib import Path
from typing import Callable

import torch


def in_two_processes(function: Callable[[int], object], folder: Path) -> None:
    """
    Calls the function with the rank of each process; raises what one of them raises. They meet at
    a file in `folder`, so that tests that run at the same time do not take each other's port.
    """
    store = f"file://{folder}/store"
    torch.multiprocessing.start_processes(_call, (function, store), nprocs=2, start_method="fork")


def _call(rank: int, function: Callable[[int], object], store: str) -> None:
    torch.distributed.init_process_group("gloo", store, rank=rank, world_size=2)
    function(rank)
    torch.distributed.destroy_process_group()
