"""Processes that train one model together, see `torch.distributed`."""

from typing import Any, List, Tuple, TypeVar

import torch
from torch import distributed

Number = TypeVar("Number", int, float)
Value = TypeVar("Value")


def rank_and_world_size() -> Tuple[int, int]:
    """The rank of this process and the number of processes."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def gathered(value: Value) -> List[Value]:
    """The values of all processes in the order of their ranks; each process has to call this."""
    _, world_size = rank_and_world_size()
    if world_size == 1:
        return [value]
    values: List[Any] = [None] * world_size
    distributed.all_gather_object(values, value)
    return values


def sum_over_processes(value: Number) -> Number:
    """The sum of `value` over all processes, each of which has to call this."""
    if rank_and_world_size() == (0, 1):
        return value
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    dtype = torch.float64 if isinstance(value, float) else torch.int64
    total = torch.tensor(value, dtype=dtype, device=device)
    distributed.all_reduce(total)
    return type(value)(total.item())
