from typing import Optional

import torch
from allennlp.training.learning_rate_schedulers import LearningRateScheduler
from allennlp.training.learning_rate_schedulers.learning_rate_scheduler import (
    _PyTorchLearningRateSchedulerWithMetricsWrapper,
)
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError, check_one_of


@LearningRateScheduler.register("elmo-reduce-on-plateau")
class ReduceOnPlateau(_PyTorchLearningRateSchedulerWithMetricsWrapper):
    """
    Reduces the learning rate when the validation metric has stopped improving.

    Wraps `torch.optim.lr_scheduler.ReduceLROnPlateau`. AllenNLP's own `reduce_on_plateau` fails
    with current versions of torch, to which it passes the removed argument `verbose`. The trainer
    negates a metric whose `validation_metric` starts with a minus; here the sign is restored, so
    that `mode` `"min"` watches the perplexity itself.

    # Parameters

    optimizer : `torch.optim.Optimizer`
        Given by the trainer, not in the configuration.
    mode : `str`
        `"max"` for metrics such as `"+f1"`, `"min"` for metrics such as `"-perplexity"`.
    factor : `float`, optional (default = `0.5`)
        Multiplies the learning rate; between 0 and 1.
    patience : `int`, optional (default = `10`)
        The rate is reduced after `patience + 1` epochs in a row without improvement.
    threshold_mode : `str`, optional (default = `"rel"`)
        Whether `threshold` is a fraction of the best value (`"rel"`) or a difference (`"abs"`).
    threshold : `float`, optional (default = `1e-4`)
        The smallest change that counts as an improvement.

    # Raises

    `ConfigurationError`
        If an argument is out of range.
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
        check_one_of(["min", "max"], mode=mode)
        check_one_of(["rel", "abs"], threshold_mode=threshold_mode)
        if not 0 < factor < 1:
            raise ConfigurationError(
                f"elmo-reduce-on-plateau: `factor` must be between 0 and 1, but it is {factor}."
            )
        super().__init__(
            torch.optim.lr_scheduler.ReduceLROnPlateau(
                optimizer,
                mode=mode,  # type: ignore[arg-type]  # Checked above, as is `threshold_mode`.
                factor=factor,
                patience=patience,
                threshold=threshold,
                threshold_mode=threshold_mode,  # type: ignore[arg-type]
            )
        )

    @overrides
    def step(self, metric: Optional[float] = None) -> None:
        """
        Called by the trainer after each epoch.

        # Parameters

        metric : `float`
            The validation metric, negated by the trainer if lower is better.

        # Raises

        `ConfigurationError`
            If there is no validation metric after an epoch, or its sign contradicts `mode`.
        """
        if metric is None:
            raise ConfigurationError(
                "elmo-reduce-on-plateau watches the validation metric, but this epoch has none: "
                "set `validation_data_path` (and `validation_metric` in the trainer), validate "
                "after every epoch if a `should_validate_callback` skips some, or use a scheduler "
                "that needs no metric."
            )
        mode, threshold_mode = self.lr_scheduler.mode, self.lr_scheduler.threshold_mode
        if mode == "min" and metric > 0:
            raise ConfigurationError(
                f"elmo-reduce-on-plateau has mode 'min', but received {metric} from a trainer that "
                "maximises it. Set `mode` to 'max', or put a minus before the name in "
                "`validation_metric` if less is better."
            )
        if mode == "max" and threshold_mode == "rel" and metric < 0:
            raise ConfigurationError(
                f"elmo-reduce-on-plateau has mode 'max', but received {metric}, for which a "
                "relative `threshold` is not defined. Set `mode` to 'min' if less is better, or "
                "`threshold_mode` to 'abs'."
            )
        super().step(metric if mode == "max" else -metric)
