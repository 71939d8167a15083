from typing import Optional

import torch
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError


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
        The number of updates between two reductions; with gradient accumulation, several batches
        are one update.

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

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        """Called after each epoch; does nothing."""

    @overrides
    def step_batch(self, batch_num_total: Optional[int] = None) -> None:
        """Called before each update with its number, counted from 1."""
        assert batch_num_total is not None
        decay = self.factor ** ((batch_num_total - 1) // self.num_batches)
        for group, rate in zip(self.optimizer.param_groups, self.base_values):
            group["lr"] = rate * decay
