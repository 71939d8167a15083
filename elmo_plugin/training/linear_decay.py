import time
from typing import Any, Dict, Optional

import torch
from allennlp.common.util import is_distributed
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError

__all__ = ["LinearDecay"]


@LearningRateScheduler.register("elmo-linear-decay")
class LinearDecay(LearningRateScheduler):
    """
    Lets the learning rate fall linearly to zero over a given time, for training within a budget of
    minutes instead of epochs. The trainer `elmo-bilm` stops when the time is over.

    Time counts while batches are trained; what a run had used before it was killed counts on when
    it is recovered. Results then depend on the speed of the machine: to repeat a run exactly,
    use AllenNLP's `linear_with_warmup`, which counts batches.

    # Parameters

    optimizer : `torch.optim.Optimizer`
        Comes from the trainer; it has no entry in the configuration.
    minutes : `float`
        Length of the training.
    warmup_steps : `int`, optional (default = `0`)
        Batches over which the rate first rises to its value.

    # Raises

    `ConfigurationError`
        If `minutes` is not above 0.
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, minutes: float, warmup_steps: int = 0
    ) -> None:
        super().__init__(optimizer)
        if minutes <= 0:
            raise ConfigurationError(f"elmo-linear-decay: expected minutes above 0, got {minutes}.")
        self.minutes = minutes
        self.warmup_steps = warmup_steps
        self._num_batches = 0
        self._elapsed = 0.0
        self._last_time: Optional[float] = None

    @property
    def is_over(self) -> bool:
        """Whether the time has been used up."""
        return self.progress >= 1.0

    @property
    def progress(self) -> float:
        """The share of the time that has been used."""
        return min(1.0, self._elapsed / (60.0 * self.minutes))

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        # Validation, which lies between the last batch and now, is not training.
        self._last_time = time.monotonic()

    @overrides
    def step_batch(self, batch_num_total: Optional[int] = None) -> None:
        now = time.monotonic()
        if self._last_time is not None:
            self._elapsed += now - self._last_time
        self._last_time = now
        if is_distributed():
            # Every process must use the same rate, or their parameters drift apart.
            elapsed = torch.tensor([self._elapsed], dtype=torch.float64)
            elapsed = elapsed.to(self.optimizer.param_groups[0]["params"][0].device)
            torch.distributed.broadcast(elapsed, src=0)
            self._elapsed = float(elapsed)
        self._num_batches += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_values()):
            group["lr"] = rate

    @overrides
    def get_values(self) -> Any:
        warmth = min(1.0, self._num_batches / self.warmup_steps) if self.warmup_steps else 1.0
        return [rate * warmth * (1.0 - self.progress) for rate in self.base_values]

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        return {"num_batches": self._num_batches, "elapsed": self._elapsed}

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._num_batches = state_dict["num_batches"]
        self._elapsed = state_dict["elapsed"]
