"""Shows the progress of long commands on standard error."""

import sys
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional

# Seconds between two lines of progress.
_SECONDS = 5.0


@contextmanager
def progress(unit: str, total: Optional[int] = None) -> Iterator[Callable[[int], Any]]:
    """
    Yields a function that adds to the progress and shows it: as a bar of `tqdm` if that is
    installed and standard error is a terminal, else as a line every five seconds.

    # Parameters

    unit : `str`
        What is counted, in the plural: `sentences`.
    total : `Optional[int]`, optional (default = `None`)
        How many there are, if that is known.

    # Returns

    `Iterator[Callable[[int], Any]]`
        A function to call with the number of units done since the last call.
    """
    make_bar = _tqdm() if sys.stderr.isatty() else None
    if make_bar is None:
        yield _Lines(unit, total).update
    else:
        with make_bar(unit=f" {unit}", total=total) as bar:
            yield bar.update


def _tqdm() -> Optional[Callable]:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm


class _Lines:
    def __init__(self, unit: str, total: Optional[int]) -> None:
        self._unit = unit
        self._of_total = "" if total is None else f" of {total:,}"
        self._done = 0
        self._start = self._last = time.monotonic()

    def update(self, number: int) -> None:
        self._done += number
        now = time.monotonic()
        if now - self._last >= _SECONDS:
            self._last = now
            speed = self._done / (now - self._start)
            shown = f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"
            line = f"{self._done:,}{self._of_total} {self._unit}, {shown} per second"
            print(line, file=sys.stderr, flush=True)
