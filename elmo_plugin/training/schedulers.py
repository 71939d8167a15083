import time
from typing import Any, Dict, List, Optional

import torch
from allennlp.common.util import is_distributed
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.learning_rate_schedulers.learning_rate_scheduler import (
    _PyTorchLearningRateSchedulerWithMetricsWrapper,
)
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError, check_least


class _ByUpdates(LearningRateScheduler):
    """Sets rates before each update. Torch's schedulers expect to be stepped after it, and warn."""

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        """Called after each epoch; does nothing."""

    def set_rates(self, rates: List[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate


@LearningRateScheduler.register("elmo-decay-by-batches")
class DecayByBatches(_ByUpdates):
    """
    Multiplies the learning rate by `factor` after every `num_batches` updates, like TensorFlow's
    `exponential_decay` with `staircase=True`. With gradient accumulation, several batches are one
    update. AllenNLP's `step` and `exponential` count epochs.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, factor: float, num_batches: int) -> None:
        super().__init__(optimizer)
        check_least(1, num_batches=num_batches)
        self.factor, self.num_batches = factor, num_batches

    @overrides
    def step_batch(self, batch_num_total: Optional[int] = None) -> None:
        """Called before each update with its number, counted from 1."""
        assert batch_num_total is not None
        decay = self.factor ** ((batch_num_total - 1) // self.num_batches)
        self.set_rates([rate * decay for rate in self.base_values])


@LearningRateScheduler.register("elmo-linear-decay")
class LinearDecay(_ByUpdates):
    """
    Decays the learning rate linearly over a time budget or a number of updates, after which the
    trainer `elmo-bilm` stops. The time of validation does not count; a recovered run continues with
    the time used so far. With a time budget, results depend on the speed of the machine.

    # Parameters

    minutes, steps : `Optional[float]`, `Optional[int]`
        The time budget, or the number of updates: exactly one of them.
    warmup_steps : `int`
        The number of updates over which the rate first increases linearly to its full value.
    end_factor : `float`
        The final rate as a fraction of the full rate. To split one schedule into two runs of equal
        length, set 0.5 in the first, and half of its learning rate in the second.
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
        is_budget = len(budgets) == 1 and budgets[0] > 0
        if not is_budget or warmup_steps < 0 or not 0.0 <= end_factor <= 1.0:
            raise ConfigurationError(
                "elmo-linear-decay: expected either minutes or steps above 0, warmup_steps of at "
                f"least 0 and end_factor from 0 to 1, found minutes {minutes}, steps {steps}, "
                f"warmup_steps {warmup_steps} and end_factor {end_factor}."
            )
        self._budget, self._is_timed = budgets[0], steps is None
        self.warmup_steps, self.end_factor = warmup_steps, end_factor
        self._num_batches, self._elapsed = 0, 0.0
        self._last_time: Optional[float] = None

    @property
    def is_over(self) -> bool:
        return self.progress >= 1.0

    @property
    def progress(self) -> float:
        """The fraction of the budget that is used up."""
        used = self._elapsed / 60.0 if self._is_timed else self._num_batches
        return min(1.0, used / self._budget)

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        # Called after validation, whose time does not count.
        self._last_time = time.monotonic()

    @overrides
    def step_batch(self, batch_num_total: Optional[int] = None) -> None:
        now = time.monotonic()
        self._elapsed += 0.0 if self._last_time is None else now - self._last_time
        self._last_time = now
        if is_distributed():
            # All processes must use the same rate, or their parameters would diverge.
            elapsed = torch.tensor([self._elapsed], dtype=torch.float64)
            elapsed = elapsed.to(self.optimizer.param_groups[0]["params"][0].device)
            torch.distributed.broadcast(elapsed, src=0)
            self._elapsed = float(elapsed)
        self._num_batches += 1
        warmup = min(1.0, self._num_batches / self.warmup_steps) if self.warmup_steps else 1.0
        decay = 1.0 - self.progress * (1.0 - self.end_factor)
        self.set_rates([rate * warmup * decay for rate in self.base_values])

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        return {"num_batches": self._num_batches, "elapsed": self._elapsed}

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._num_batches, self._elapsed = state_dict["num_batches"], state_dict["elapsed"]


@LearningRateScheduler.register("elmo-reduce-on-plateau")
class ReduceOnPlateau(_PyTorchLearningRateSchedulerWithMetricsWrapper):
    """
    `torch.optim.lr_scheduler.ReduceLROnPlateau` on the validation metric. AllenNLP's
    `reduce_on_plateau` passes an argument that torch removed. `mode` is `"max"` for metrics such as
    `"+f1"`, `"min"` for metrics such as `"-perplexity"`.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        mode: str,
        factor: float = 0.5,
        patience: int = 10,
        threshold_mode: str = "rel",
        threshold: float = 1e-4,
    ) -> None:
        settings: Dict[str, Any] = {"mode": mode, "threshold_mode": threshold_mode}
        try:
            scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer, factor=factor, patience=patience, threshold=threshold, **settings
            )
        except ValueError as error:
            raise ConfigurationError(f"elmo-reduce-on-plateau: {error}") from error
        super().__init__(scheduler)

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        """Called after each epoch. The trainer negates metrics that begin with `-`."""
        if metric is not None and self.lr_scheduler.mode == "min":
            metric = -metric
        # AllenNLP refuses an epoch without a metric.
        super().step(metric)
