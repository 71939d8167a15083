import time
from typing import Any, Dict, List, Optional

import torch
from allennlp.common.util import is_distributed
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError


@LearningRateScheduler.register("elmo-linear-decay")
class LinearDecay(LearningRateScheduler):
    """
    Decays the learning rate linearly over a time budget or over a number of updates, to zero or a
    fraction of its first value. The trainer `elmo-bilm` stops at the end of it.

    Of the time, only training counts, not validation; a recovered run continues with the time used
    so far. Its results depend on the speed of the machine; those of a number of updates do not.

    # Parameters

    optimizer : `torch.optim.Optimizer`
        Given by the trainer, not in the configuration.
    minutes : `float`, optional (default = `None`)
        The time budget.
    steps : `int`, optional (default = `None`)
        The number of updates, instead of `minutes`.
    warmup_steps : `int`, optional (default = `0`)
        Number of updates over which the rate first increases linearly to its full value; with
        gradient accumulation, the batches of an update count as one.
    end_factor : `float`, optional (default = `0.0`)
        The final rate as a fraction of the full rate. Above 0 if a second run continues from
        the weights. To split one schedule into two runs of equal length, set `end_factor: 0.5` in
        the first, and half of its learning rate in the second.

    # Raises

    `ConfigurationError`
        Unless exactly one of `minutes` and `steps` is given. If it is not above 0, `warmup_steps`
        is below 0, or `end_factor` not from 0 to 1.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        minutes: Optional[float] = None,
        steps: Optional[int] = None,
        warmup_steps: int = 0,
        end_factor: float = 0.0,
    ) -> None:
        super().__init__(optimizer)
        budgets = [budget for budget in (minutes, steps) if budget is not None]
        if len(budgets) != 1:
            raise ConfigurationError(
                "elmo-linear-decay: expected either minutes or steps, "
                f"found {'both' if budgets else 'neither'}."
            )
        if budgets[0] <= 0 or warmup_steps < 0 or not 0.0 <= end_factor <= 1.0:
            raise ConfigurationError(
                "elmo-linear-decay: expected minutes or steps above 0, warmup_steps of at least 0 "
                f"and end_factor from 0 to 1, found {budgets[0]}, {warmup_steps} and {end_factor}."
            )
        self.minutes = minutes
        self.steps = steps
        self._budget = budgets[0]
        self.warmup_steps = warmup_steps
        self.end_factor = end_factor
        self._num_batches = 0
        self._elapsed = 0.0
        self._last_time: Optional[float] = None

    @property
    def is_over(self) -> bool:
        """True if the budget is used up."""
        return self.progress >= 1.0

    @property
    def progress(self) -> float:
        """The fraction of the budget that is used up."""
        used = self._elapsed / 60.0 if self.steps is None else self._num_batches
        return min(1.0, used / self._budget)

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        # Called after validation, whose time does not count.
        self._last_time = time.monotonic()

    @overrides
    def step_batch(self, batch_num_total: Optional[int] = None) -> None:
        now = time.monotonic()
        if self._last_time is not None:
            self._elapsed += now - self._last_time
        self._last_time = now
        if is_distributed():
            # All processes must use the same rate, or their parameters would diverge.
            elapsed = torch.tensor([self._elapsed], dtype=torch.float64)
            elapsed = elapsed.to(self.optimizer.param_groups[0]["params"][0].device)
            torch.distributed.broadcast(elapsed, src=0)
            self._elapsed = float(elapsed)
        self._num_batches += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_values()):
            group["lr"] = rate

    @overrides
    def get_values(self) -> List[float]:
        warmup = min(1.0, self._num_batches / self.warmup_steps) if self.warmup_steps else 1.0
        decay = 1.0 - self.progress * (1.0 - self.end_factor)
        return [rate * warmup * decay for rate in self.base_values]

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        return {"num_batches": self._num_batches, "elapsed": self._elapsed}

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._num_batches = state_dict["num_batches"]
        self._elapsed = state_dict["elapsed"]
