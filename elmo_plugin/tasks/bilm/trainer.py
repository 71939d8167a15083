import os
from typing import Any, Dict, Tuple

import torch
from allennlp.training.trainer import Trainer
from overrides import overrides

from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.training import LinearDecay, RecoverableTrainer
from elmo_plugin.util.distributed import threads_per_process
from elmo_plugin.util.errors import ConfigurationError


@Trainer.register("elmo-bilm", constructor="from_partial_objects")
class PretrainingTrainer(RecoverableTrainer):
    """
    `RecoverableTrainer` for language models: checkpoints also contain `training_state` of the
    model, and a recovered run does not read finished batches again. Training also ends when the
    budget of the learning rate scheduler `elmo-linear-decay` is used up.

    Parameters are those of `RecoverableTrainer`, which needs the checkpointer `elmo-atomic`, but
    `mixed_precision` is a parameter of the model.
    """

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
        return super()._try_train()

    @overrides
    def _maybe_restore_checkpoint(self) -> None:
        # Checked here, so that a wrong setting fails now, not at the first checkpoint.
        if not isinstance(self.model, BilmModel):
            found = type(self.model).__name__
            raise ConfigurationError(f"Trainer elmo-bilm needs the model elmo-bilm, found {found}.")
        if not isinstance(self.data_loader, BilmDataLoader):
            found = type(self.data_loader).__name__
            raise ConfigurationError(
                f"Trainer elmo-bilm needs the data loader elmo-bilm, found {found}."
            )
        if self._mixed_precision or self._use_amp:
            found = "mixed_precision" if self._mixed_precision else "use_amp"
            raise ConfigurationError(
                f"Trainer elmo-bilm: expected `mixed_precision` in `model`, found `{found}` in "
                "`trainer`, where it has no effect on a language model. Move it."
            )
        self._text = self.data_loader
        super()._maybe_restore_checkpoint()
        epochs, batches = (
            self._start_after_epochs_completed,
            self._start_after_batches_in_epoch_completed,
        )
        self._text.start_at(epochs, batches * self._num_gradient_accumulation_steps)
        self._text.stop_when(lambda: self._is_over)
        if isinstance(self._validation_data_loader, BilmDataLoader):
            # If it is shuffled, its order depends on the epoch.
            self._validation_data_loader.start_at(epochs, 0)

    def _share_cores(self) -> None:
        """Divides the threads among the processes of this machine."""
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
