from typing import Any, Dict, Iterable

import torch
from allennlp.training.moving_average import (
    ExponentialMovingAverage,
    MovingAverage,
    NamedParameter,
)
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError


@MovingAverage.register("elmo-exponential")
class RecoverableMovingAverage(ExponentialMovingAverage):
    """
    AllenNLP's `exponential` moving average, but a run that is killed and recovered has the same
    averages as an uninterrupted one.

    AllenNLP stores averages, backups and parameters in the checkpoint and, after `--recover`,
    averages the stored parameters, which training no longer updates. Here a checkpoint holds only
    the averages, a third as much, and recovery is right with AllenNLP's trainer too.

    # Parameters

    parameters : `Iterable[NamedParameter]`
        Given by the trainer, not in the configuration.
    decay : `float`, optional (default = `0.999`)
        The weight of the old average in each update; at most `(1 + steps) / (10 + steps)`.
    """

    def __init__(self, parameters: Iterable[NamedParameter], decay: float = 0.999) -> None:
        super().__init__(parameters, decay)

    @overrides
    def assign_average_value(self) -> None:
        for name, parameter in self._parameters:
            self._backups[name].copy_(parameter.data)
            _set(parameter, self._shadows[name])

    @overrides
    def restore(self) -> None:
        for name, parameter in self._parameters:
            _set(parameter, self._backups[name])

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        return {"shadows": self._shadows}

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """
        # Raises

        `ConfigurationError`
            If the checkpoint has averages of other parameters.
        """
        saved = state_dict["shadows"]
        if {name: value.shape for name, value in saved.items()} != {
            name: value.shape for name, value in self._shadows.items()
        }:
            raise ConfigurationError(
                "The checkpoint holds moving averages of other parameters than those of this "
                "model. Recover with the experiment that wrote it."
            )
        for name, average in saved.items():
            self._shadows[name].copy_(average)


def _set(parameter: torch.Tensor, value: torch.Tensor) -> None:
    # Not through `data`, whose changes do not increase the version of the tensor: copies of
    # weights in a faster layout are refreshed when the version changes.
    with torch.no_grad():
        parameter.copy_(value)
