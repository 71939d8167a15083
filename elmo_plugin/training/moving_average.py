from typing import Any, Dict, Iterable

import torch
from allennlp.training.moving_average import (
    ExponentialMovingAverage,
    MovingAverage,
    NamedParameter,
)
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError

__all__ = ["RecoverableMovingAverage"]


@MovingAverage.register("elmo-exponential")
class RecoverableMovingAverage(ExponentialMovingAverage):
    """
    AllenNLP's `exponential` moving average, but a run that is killed and recovered has the same
    averages as one that never was.

    AllenNLP keeps the parameters themselves in a checkpoint, and after `--recover` follows these
    copies, which no longer learn: averages stand still, and what is validated and archived are
    the last values. Here a checkpoint holds averages only.

    # Parameters

    parameters : `Iterable[NamedParameter]`
        Come from the trainer; they have no entry in the configuration.
    decay : `float`, optional (default = `0.999`)
        What the average keeps of itself at each step; less at first, `(1 + steps) / (10 + steps)`.
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
            If the averages are those of other parameters.
        """
        saved = state_dict["shadows"]
        if {name: value.shape for name, value in saved.items()} != {
            name: value.shape for name, value in self._shadows.items()
        }:
            raise ConfigurationError(
                "The checkpoint holds moving averages of other parameters than those that are to "
                "be trained. Recover with the experiment that wrote it."
            )
        for name, average in saved.items():
            self._shadows[name].copy_(average)


def _set(parameter: torch.Tensor, value: torch.Tensor) -> None:
    # Not through `data`: layers that keep a copy laid out for speed notice this by its version.
    with torch.no_grad():
        parameter.copy_(value)
