"""Processes that work together: their threads, their end, and what `torch.distributed` adds up."""

import ctypes
import os
import sys
from typing import Any, List, Tuple, TypeVar

import torch
from torch import distributed

Number = TypeVar("Number", int, float)
Value = TypeVar("Value")

# Option of Linux's `prctl` for the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
# Loaded here, because a process should do little between fork and exec.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def rank_and_world_size() -> Tuple[int, int]:
    """Rank and number of processes; `(0, 1)` if `torch.distributed` is not in use."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def gathered(value: Value) -> List[Value]:
    """The values of all processes, by rank. Each process has to call this."""
    _, world_size = rank_and_world_size()
    if world_size == 1:
        return [value]
    values: List[Any] = [None] * world_size
    distributed.all_gather_object(values, value)
    return values


def sum_over_processes(value: Number) -> Number:
    """The sum of `value` over all processes. Each process has to call this."""
    if rank_and_world_size() == (0, 1):
        return value
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    dtype = torch.float64 if isinstance(value, float) else torch.int64
    total = torch.tensor(value, dtype=dtype, device=device)
    distributed.all_reduce(total)
    return type(value)(total.item())


def threads_per_process(num_processes: int) -> int:
    """
    An equal share of PyTorch's threads for each process of this machine: more threads than cores
    are ten times as slow. If `OMP_NUM_THREADS` is set, each process gets all of them.
    """
    num_threads = torch.get_num_threads()
    if os.environ.get("OMP_NUM_THREADS"):
        return num_threads
    return max(1, num_threads // num_processes)


def end_with_parent(parent: int, signal_number: int) -> None:
    """
    On Linux, sends this process a signal when the thread that started it ends. Exits at once if
    the process `parent` has already ended.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        os._exit(1)
