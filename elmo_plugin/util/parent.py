"""Ends a process together with the one that started it."""

import ctypes
import os

# Option of Linux's `prctl`: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1
# Loaded here, because little may be done between fork and exec.
_LIBC = ctypes.CDLL(None)


def end_with_parent(parent: int, signal_number: int) -> None:
    """
    The calling process gets the signal when the thread that started it ends, and exits if the
    process `parent` has already ended.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal_number)
    if os.getppid() != parent:
        os._exit(1)
