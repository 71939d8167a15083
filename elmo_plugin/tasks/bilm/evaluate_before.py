import json
import logging
import os
from typing import Any, Dict

import torch
from allennlp.common.util import dump_metrics
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from overrides import overrides

from elmo_plugin.training.random_states import random_states, set_random_states
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError

logger = logging.getLogger(__name__)

FILE_NAME = "metrics_before.json"


@TrainerCallback.register("elmo-evaluate-before")
class EvaluateBefore(TrainerCallback):
    """
    Also evaluates on the validation text before the first batch, to compare a fine-tuned biLM with
    its initial weights (table 7 of the ELMo paper).

    Writes `metrics_before.json` beside AllenNLP's `metrics_epoch_0.json`; a recovered run keeps
    it. Logs both values of each metric after each epoch.
    """

    @overrides
    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        self._path = os.path.join(self.serialization_dir, FILE_NAME)
        if trainer._validation_data_loader is None:
            raise ConfigurationError(
                "elmo-evaluate-before needs a text to evaluate on: set `validation_data_path`."
            )
        if os.path.exists(self._path):
            # The evaluation of the interrupted run advanced the loader's epoch number, which
            # determines the shuffling: advance it here, too.
            iter(trainer._validation_data_loader)
            return
        # A recovered run does not evaluate again, and must draw the same random numbers.
        states = random_states(trainer.cuda_device)
        with torch.no_grad():
            trainer._validation_loss(-1)
        set_random_states(states, trainer.cuda_device)
        metrics = trainer.model.get_metrics(reset=True)
        if is_primary:
            with atomic_write(self._path) as unfinished:
                dump_metrics(str(unfinished), metrics, log=True)

    @overrides
    def on_epoch(
        self,
        trainer: GradientDescentTrainer,
        metrics: Dict[str, Any],
        epoch: int,
        is_primary: bool = True,
        **kwargs: Any,
    ) -> None:
        if not is_primary:
            return
        with open(self._path, encoding="utf-8") as opened:
            before = json.load(opened)
        for name, value in before.items():
            after = metrics.get(f"validation_{name}")
            if after is not None:
                logger.info("%s: %.2f before, %.2f after epoch %d", name, value, after, epoch)
