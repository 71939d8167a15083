import time
from typing import Callable


def wait_until(
    condition: Callable[[], object], seconds: float = 60.0, message: Callable[[], str] = str
) -> None:
    """Fails with a message, made only then, if the condition does not come true in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, message()
        time.sleep(0.005)
