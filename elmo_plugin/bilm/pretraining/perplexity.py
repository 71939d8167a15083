"""What a language model measures in training."""

import math
import time
from typing import Dict, Optional, Union

import torch

from elmo_plugin.util.distributed import sum_over_processes


class Perplexity:
    """
    The exponential of the mean negative log-likelihood per prediction. A sentence of `n` words has
    `n + 1` predictions per direction: its words, and `</S>` (forward) or `<S>` (backward). Several
    processes are summed only in a call with `reset`.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._loss: Dict[str, float] = {}
        self._num_tokens: Dict[str, int] = {}

    def __call__(self, direction: str, loss: Union[float, torch.Tensor], num_tokens: int) -> None:
        """Adds a negative log-likelihood in nats, summed over `num_tokens` predictions."""
        self._loss[direction] = self._loss.get(direction, 0.0) + float(loss)
        self._num_tokens[direction] = self._num_tokens.get(direction, 0) + num_tokens

    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        `perplexity`, the geometric mean, and `<direction>_perplexity` of each direction; NaN before
        the first batch.
        """
        if reset:
            for name in self._loss:
                self._loss[name] = sum_over_processes(self._loss[name])
                self._num_tokens[name] = sum_over_processes(self._num_tokens[name])
        means = {name: loss / self._num_tokens[name] for name, loss in self._loss.items()}
        mean = sum(means.values()) / len(means) if means else math.nan
        result = {"perplexity": perplexity_of(mean)}
        for name, loss in means.items():
            result[f"{name}_perplexity"] = perplexity_of(loss)
        if reset:
            self.reset()
        return result


def perplexity_of(loss: float) -> float:
    """The perplexity of a mean loss in nats; infinite above 700, near the limit of `math.exp`."""
    return math.inf if loss > 700.0 else math.exp(loss)


class Speed:
    """Tokens per second since the last reset, without the time between epochs."""

    def __init__(self) -> None:
        self._num_tokens = 0
        self._since: Optional[float] = None

    def count(self, num_tokens: int) -> None:
        """Adds a batch; the first one only starts the clock."""
        if self._since is None:
            self._since = time.monotonic()
        else:
            self._num_tokens += num_tokens

    def per_second(self, reset: bool) -> float:
        """Tokens per second; 0 before the second batch."""
        elapsed = 0.0 if self._since is None else time.monotonic() - self._since
        speed = self._num_tokens / elapsed if elapsed else 0.0
        if reset:
            self._num_tokens, self._since = 0, None
        return speed
