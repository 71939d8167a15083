from typing import Any, Dict, List, Optional, Union

import torch
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError

__all__ = ["ReduceOnPlateau"]


@LearningRateScheduler.register("elmo-reduce-on-plateau")
class ReduceOnPlateau(LearningRateScheduler):
    """
    Halves the learning rate when the validation metric has stopped improving.

    Wraps `torch.optim.lr_scheduler.ReduceLROnPlateau`. AllenNLP's own `reduce_on_plateau` cannot
    be built any more: it passes `verbose`, which torch dropped. The arguments are those of
    AllenNLP's without it; two things differ:

    - `mode` must be given, and says which way the metric named in the trainer's
      `validation_metric` improves: `"max"` beside `"+f1"`, `"min"` beside `"-perplexity"`. The
      trainer hands over a metric with a minus already negated; here the minus is taken off
      again, so that `"min"` watches the perplexity itself. (AllenNLP's version reduces the rate
      after every improvement then.)
    - `factor` is 0.5 by default, what the task papers use, not 0.1.

    # Parameters

    optimizer : `torch.optim.Optimizer`
        Comes from the trainer; it has no entry in the configuration.
    mode : `str`
        `"max"` if more is better, `"min"` if less is better.
    factor : `float`, optional (default = `0.5`)
        What the learning rate is multiplied by, between 0 and 1.
    patience : `int`, optional (default = `10`)
        Epochs without improvement that are put up with; the rate drops after the next one.
    threshold_mode : `str`, optional (default = `"rel"`)
        Whether `threshold` is a fraction of the best value (`"rel"`) or a difference (`"abs"`).
    threshold : `float`, optional (default = `1e-4`)
        What counts as an improvement.
    cooldown : `int`, optional (default = `0`)
        Epochs after a reduction in which nothing is counted.
    min_lr : `Union[float, List[float]]`, optional (default = `0`)
        The rate never falls below this; a list has one entry per parameter group.
    eps : `float`, optional (default = `1e-8`)
        A reduction smaller than this is not made.

    # Raises

    `ConfigurationError`
        If an argument has a value that no schedule can have.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        mode: str,
        factor: float = 0.5,
        patience: int = 10,
        threshold_mode: str = "rel",
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: Union[float, List[float]] = 0,
        eps: float = 1e-8,
    ) -> None:
        super().__init__(optimizer)
        _check_choice("mode", mode, ["min", "max"])
        _check_choice("threshold_mode", threshold_mode, ["rel", "abs"])
        if not 0 < factor < 1:
            raise ConfigurationError(
                f"elmo-reduce-on-plateau multiplies the learning rate by `factor`, so it must lie "
                f"between 0 and 1, but it is {factor}."
            )
        num_groups = len(optimizer.param_groups)
        if isinstance(min_lr, list) and len(min_lr) != num_groups:
            raise ConfigurationError(
                f"elmo-reduce-on-plateau has {len(min_lr)} values in `min_lr`, but the optimizer "
                f"has {num_groups} parameter groups: give one value, or one for each group."
            )
        self._plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer,
            mode=mode,
            factor=factor,
            patience=patience,
            threshold=threshold,
            threshold_mode=threshold_mode,
            cooldown=cooldown,
            min_lr=min_lr,
            eps=eps,
        )

    @overrides
    def get_values(self) -> List[float]:
        """The learning rate of each parameter group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        """
        Called by the trainer after each epoch.

        # Parameters

        metric : `float`
            The validation metric with the sign the trainer gives it: more is better.

        # Raises

        `ConfigurationError`
            If there is no validation metric, or its sign contradicts `mode`.
        """
        if metric is None:
            raise ConfigurationError(
                "elmo-reduce-on-plateau watches the validation metric, but this experiment has "
                "none: set `validation_data_path` (and `validation_metric` in the trainer), or "
                "use a scheduler that needs no metric."
            )
        if self._plateau.mode == "min" and metric > 0:
            raise ConfigurationError(
                f"elmo-reduce-on-plateau has mode 'min', but received {metric} from a trainer that "
                "maximises it. Set `mode` to 'max', or put a minus before the name in "
                "`validation_metric` if less is better."
            )
        self._plateau.step(metric if self._plateau.mode == "max" else -metric)

    @overrides
    def state_dict(self) -> Dict[str, Any]:
        """What a checkpoint keeps: the best value so far and the epochs without a better one."""
        return self._plateau.state_dict()

    @overrides
    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Goes on from what `state_dict` returned."""
        self._plateau.load_state_dict(state_dict)


def _check_choice(name: str, value: str, choices: List[str]) -> None:
    if value not in choices:
        raise ConfigurationError(
            f"elmo-reduce-on-plateau: `{name}` must be one of {choices}, but it is '{value}'."
        )
