"""Shows the progress of long commands on standard error."""

import sys
import time
from contextlib import contextmanager
from typing import Callable, Iterator, Optional

# Seconds between two lines of progress.
_SECONDS = 5.0


@contextmanager
def progress(unit: str, total: Optional[int] = None) -> Iterator[Callable[[int], None]]:
    """
    Yields a function to call with the number of sentences (or another `unit`) done since the last
    call. It prints a line every five seconds.
    """
    of_total = "" if total is None else f" of {total:,}"
    done, start = 0, time.monotonic()
    last = start

    def advance(number: int) -> None:
        nonlocal done, last
        done, now = done + number, time.monotonic()
        if now - last >= _SECONDS:
            last, speed = now, done / (now - start)
            shown = f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"
            line = f"{done:,}{of_total} {unit}, {shown} per second"
            print(line, file=sys.stderr, flush=True)

    yield advance
