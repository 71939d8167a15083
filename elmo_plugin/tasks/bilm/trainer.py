import logging
import os
from typing import Any, Dict, Tuple

import torch
from allennlp.common.util import dump_metrics
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.trainer import Trainer
from overrides import overrides

from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.training import LinearDecay, RecoverableTrainer
from elmo_plugin.training.recoverable_trainer import random_states, set_random_states
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.distributed import threads_per_process
from elmo_plugin.util.errors import ConfigurationError


@Trainer.register("elmo-bilm", constructor="from_partial_objects")
class PretrainingTrainer(RecoverableTrainer):
    """
    `RecoverableTrainer` for language models, whose `training_state` is in checkpoints. A recovered
    run does not read finished batches again. Training also ends with the budget of the scheduler
    `elmo-linear-decay`. The model and the data loader are of type `elmo-bilm`. Set
    `mixed_precision` in the model, not here.
    """

    data_loader: BilmDataLoader

    @overrides
    def _process_state(self) -> Dict[str, Any]:
        return {**super()._process_state(), "model": self.model.training_state()}

    @overrides
    def _load_process_state(self, state: Dict[str, Any]) -> None:
        super()._load_process_state(state)
        self.model.load_training_state(state["model"])

    @overrides
    def _try_train(self) -> Tuple[Dict[str, Any], int]:
        self._metric_tracker.should_stop_early = self._should_stop_early
        if self._distributed and self.cuda_device.type == "cpu":
            self._share_cores()
        theirs = logging.getLogger(GradientDescentTrainer.__module__)
        theirs.addFilter(self._without_patience)
        try:
            return super()._try_train()
        finally:
            theirs.removeFilter(self._without_patience)

    def _without_patience(self, record: logging.LogRecord) -> bool:
        """AllenNLP calls every early stop a lack of patience."""
        if self._is_over and str(record.msg).startswith("Ran out of patience"):
            record.msg = "The schedule of the learning rate has ended. Stopping training."
        return True

    @overrides
    def _maybe_restore_checkpoint(self) -> None:
        super()._maybe_restore_checkpoint()
        epochs = self._start_after_epochs_completed
        batches = self._start_after_batches_in_epoch_completed
        self.data_loader.start_at(epochs, batches * self._num_gradient_accumulation_steps)
        self.data_loader.stop_when(lambda: self._is_over)
        if isinstance(self._validation_data_loader, BilmDataLoader):
            # If it is shuffled, its order depends on the epoch.
            self._validation_data_loader.start_at(epochs, 0)

    def _share_cores(self) -> None:
        # With torchrun, some processes may be on other machines.
        num_processes = int(os.environ.get("LOCAL_WORLD_SIZE") or self._world_size)
        torch.set_num_threads(threads_per_process(num_processes))

    @property
    def _is_over(self) -> bool:
        scheduler = self._learning_rate_scheduler
        return isinstance(scheduler, LinearDecay) and scheduler.is_over

    @overrides
    def _should_stop_early(self) -> bool:
        return self._is_over or type(self._metric_tracker).should_stop_early(self._metric_tracker)


@TrainerCallback.register("elmo-evaluate-before")
class EvaluateBefore(TrainerCallback):
    """
    Also evaluates before the first batch, to compare a fine-tuned biLM with its initial weights
    (table 7 of the ELMo paper). Writes `metrics_before.json`, which a recovered run keeps.
    """

    @overrides
    def on_start(
        self, trainer: GradientDescentTrainer, is_primary: bool = True, **kwargs: Any
    ) -> None:
        super().on_start(trainer, is_primary, **kwargs)
        path = os.path.join(self.serialization_dir, "metrics_before.json")
        if trainer._validation_data_loader is None:
            raise ConfigurationError(
                "elmo-evaluate-before needs a text to evaluate on: set `validation_data_path`."
            )
        if os.path.exists(path):
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
            with atomic_write(path) as unfinished:
                dump_metrics(str(unfinished), metrics, log=True)
