"""The threads of processes that compute at the same time."""

import os

import torch


def threads_per_process(num_processes: int) -> int:
    """
    The number of threads of each of several processes of this machine: an equal share of PyTorch's,
    because more threads than cores are ten times as slow; all of them if `OMP_NUM_THREADS` is set.
    """
    num_threads = torch.get_num_threads()
    if os.environ.get("OMP_NUM_THREADS"):
        return num_threads
    return max(1, num_threads // num_processes)
