import time
from typing import Optional


class Speed:
    """Tokens per second since the last reset, without the time between epochs."""

    def __init__(self) -> None:
        self._num_tokens = 0
        self._since: Optional[float] = None

    def count(self, num_tokens: int) -> None:
        if self._since is None:
            # The first batch only starts the clock.
            self._since = time.monotonic()
        else:
            self._num_tokens += num_tokens

    def per_second(self, reset: bool) -> float:
        elapsed = time.monotonic() - self._since if self._since is not None else 0.0
        speed = self._num_tokens / elapsed if elapsed else 0.0
        if reset:
            self._num_tokens, self._since = 0, None
        return speed
