import math
from typing import Dict, Union

import torch

from elmo_plugin.util.distributed import sum_over_processes


class Perplexity:
    """
    The perplexity of a language model: the exponential of the mean negative log-likelihood per
    prediction. A sentence of n words has n + 1 predictions per direction: its words, and `</S>`
    (forward) or `<S>` (backward). With several processes, the values are those of this process,
    except those of a call with `reset`, which sums over all processes.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Sets all sums to zero."""
        self._loss: Dict[str, float] = {}
        self._num_tokens: Dict[str, int] = {}

    def __call__(self, direction: str, loss: Union[float, torch.Tensor], num_tokens: int) -> None:
        """
        Adds a negative log-likelihood in nats, summed over `num_tokens` predictions, to that of the
        `direction`, `forward` or `backward`.
        """
        self._loss[direction] = self._loss.get(direction, 0.0) + float(loss)
        self._num_tokens[direction] = self._num_tokens.get(direction, 0) + num_tokens

    def mean_loss(self) -> float:
        """Mean over directions of the loss per token, in nats; NaN before the first batch."""
        means = [self._loss[name] / self._num_tokens[name] for name in self._loss]
        return sum(means) / len(means) if means else math.nan

    def get_metric(self, reset: bool = False) -> Dict[str, float]:
        """
        `forward_perplexity`, `backward_perplexity` if the model has that direction, and their
        geometric mean, `perplexity`.
        """
        if reset:
            for name in self._loss:
                self._loss[name] = sum_over_processes(self._loss[name])
                self._num_tokens[name] = sum_over_processes(self._num_tokens[name])
        result = {"perplexity": perplexity_of(self.mean_loss())}
        for name in self._loss:
            result[f"{name}_perplexity"] = perplexity_of(self._loss[name] / self._num_tokens[name])
        if reset:
            self.reset()
        return result


def perplexity_of(loss: float) -> float:
    """The perplexity of a mean loss in nats; infinite above 700, near the limit of `math.exp`."""
    return math.inf if loss > 700.0 else math.exp(loss)
