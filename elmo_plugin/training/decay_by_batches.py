from typing import Any, Dict, List, Optional

import torch
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError

__all__ = ["DecayByBatches"]


@LearningRateScheduler.register("elmo-decay-by-batches")
class DecayByBatches(LearningRateScheduler):
    """
    Multiplies the learning rate by `factor` after every `num_batches` updates, as TensorFlow's
    `exponential_decay` with `staircase=True` does. AllenNLP's `step` and `exponential` count
    epochs, whose length depends on the corpus.

    # Parameters

    optimizer : `torch.optim.Optimizer`
        Given by the trainer, not in the configuration.
    factor : `float`
        Above 0, at most 1.
    num_batches : `int`
        A number of updates: with gradient accumulation, the batches of an update count as one.

    # Raises

    `ConfigurationError`
        If an argument is out of range.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, factor: float, num_batches: int) -> None:
        super().__init__(optimizer)
        if not 0 < factor <= 1 or num_batches < 1:
            raise ConfigurationError(
                "elmo-decay-by-batches: expected `factor` above 0 and at most 1 and `num_batches` "
                f"of at least 1, found {factor} and {num_batches}."
            )
        self.factor = factor
        self.num_batches = num_batches
        # Updates, the one that follows the last `step_batch` included.
        self._num_trained = 0

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        """Called after each epoch; does nothing."""

    @overrides
    def step_batch(self, batch_num_total: Optional[int] = None) -> None:
        """Called before each update."""
        self._num_trained += 1
        for group, rate in zip(self.optimizer.param_groups, self.get_values()):
            group["lr"] = rate

    @overrides
    def get_values(self) -> List[float]:
        """The learning rate of each parameter group."""
        num_finished = max(self._num_trained - 1, 0)
        decay = self.factor ** (num_finished // self.num_batches)
        return [rate * decay for rate in self.base_values]

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        return {"num_trained": self._num_trained}

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        self._num_trained = state_dict["num_trained"]
