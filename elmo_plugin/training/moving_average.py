from types import MethodType
from typing import Any, Dict, Iterable

from allennlp.training.moving_average import (
    ExponentialMovingAverage,
    MovingAverage,
    NamedParameter,
)
from overrides import overrides


@MovingAverage.register("elmo-exponential")
class RecoverableMovingAverage(ExponentialMovingAverage):
    """
    AllenNLP's `exponential`, but checkpoints hold only the averages. AllenNLP also stores copies of
    the parameters, which it averages after `--recover` instead of the trained ones. `decay`, the
    weight of the old average, is at most `(1 + steps) / (10 + steps)`.
    """

    def __init__(self, parameters: Iterable[NamedParameter], decay: float = 0.999) -> None:
        super().__init__(parameters, decay)

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        return {"shadows": self._shadows}

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        for name, average in self._shadows.items():
            average.copy_(state_dict["shadows"][name])


def make_recoverable(average: MovingAverage) -> None:
    """Gives a moving average with AllenNLP's state the two methods above."""
    ours: Any = RecoverableMovingAverage
    if type(average).load_state_dict is MovingAverage.load_state_dict:
        for name in ("state_dict", "load_state_dict"):
            setattr(average, name, MethodType(getattr(ours, name), average))
