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
    Yields a function to call with the number of sentences (or another `unit`) done since the last
    call. It shows a `tqdm` bar on a terminal if tqdm is installed, else a line every five seconds.
    """
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is not None and sys.stderr.isatty():
        with tqdm(unit=f" {unit}", total=total) as bar:
            yield bar.update
    else:
        update = _lines(unit, total)
        yield update
        update(0, is_end=True)


def _lines(unit: str, total: Optional[int]) -> Callable[..., None]:
    of_total = "" if total is None else f" of {total:,}"
    done, start = 0, time.monotonic()
    last, shown_last = start, 0

    def update(number: int, *, is_end: bool = False) -> None:
        nonlocal done, last, shown_last
        done, now = done + number, time.monotonic()
        # What has shown lines also shows its end.
        is_due = now - last >= _SECONDS or (is_end and shown_last)
        if is_due and done > shown_last:
            last, shown_last, speed = now, done, done / (now - start)
            shown = f"{speed:,.0f}" if speed >= 10 else f"{speed:.1f}"
            line = f"{done:,}{of_total} {unit}, {shown} per second"
            print(line, file=sys.stderr, flush=True)

    return update
