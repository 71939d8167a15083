import os
from typing import Any, Dict, Optional, Tuple

import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import TensorDict
from allennlp.training.checkpointer import TrainerCheckpoint
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.trainer import Trainer
from overrides import overrides

from elmo_plugin.bilm.pretraining.data_loader import BilmDataLoader
from elmo_plugin.bilm.pretraining.language_model import LanguageModel
from elmo_plugin.training import LinearDecay, save_atomically

# Our own part of a checkpoint, beside AllenNLP's.
_KEY = "elmo-bilm"


@Trainer.register("elmo-bilm", constructor="from_partial_objects")
class PretrainingTrainer(GradientDescentTrainer):
    """
    AllenNLP's trainer, for language models: a recovered run ends with the parameters that the
    run would have had without interruption, bit for bit on a CPU.

    AllenNLP's checkpoint lacks the carried states, the position of dropout and samples, and the
    best weights of an epoch whose end was interrupted; and on recovery it reads all text again up
    to where it was. Here the loader jumps. With the learning rate scheduler `elmo-linear-decay`
    training ends when its time is over. Parameters are those of AllenNLP's
    `GradientDescentTrainer`; use the checkpointer `elmo-atomic` with it.
    """

    @overrides
    def get_checkpoint_state(self) -> Optional[TrainerCheckpoint]:
        ours = self._gather(self._language_model.training_state())
        checkpoint = super().get_checkpoint_state()
        if checkpoint is not None:
            checkpoint.trainer_state[_KEY] = {
                "processes": ours,
                "total_batches_completed": self._total_batches_completed,
            }
        return checkpoint

    @overrides
    def batch_outputs(self, batch: TensorDict, for_training: bool) -> Dict[str, torch.Tensor]:
        outputs = super().batch_outputs(batch, for_training)
        if for_training and self._is_over:
            self._loader.stop()
        return outputs

    @overrides
    def _try_train(self) -> Tuple[Dict[str, Any], int]:
        self._metric_tracker.should_stop_early = self._should_stop_early
        return super()._try_train()

    @overrides
    def _maybe_restore_checkpoint(self) -> None:
        super()._maybe_restore_checkpoint()
        latest = self._checkpointer and self._checkpointer.find_latest_checkpoint()
        if not latest:
            return
        ours = torch.load(latest[1], map_location="cpu", weights_only=True).get(_KEY)
        if ours is None or len(ours["processes"]) != self._world_size:
            raise ConfigurationError(
                f"{latest[1]} was written by another trainer or another number of processes. "
                "Recover with what it was trained with."
            )
        self._language_model.load_training_state(ours["processes"][self._rank])
        epochs, batches = (
            self._start_after_epochs_completed,
            self._start_after_batches_in_epoch_completed,
        )
        self._loader.start_at(epochs, batches * self._num_gradient_accumulation_steps)
        # AllenNLP counts the batches of the started epoch again, but not those of earlier ones.
        self._total_batches_completed = ours["total_batches_completed"] - batches
        if epochs and not batches and self._metric_tracker.is_best_so_far():
            # The checkpoint is written before the best weights are.
            self._best_model_filename = os.path.join(self._serialization_dir, "best.th")
            if self._primary:
                save_atomically(torch.load(latest[0], weights_only=True), self._best_model_filename)

    @property
    def _language_model(self) -> LanguageModel:
        if not isinstance(self.model, LanguageModel):
            raise ConfigurationError("The trainer elmo-bilm trains the model elmo-bilm only.")
        return self.model

    @property
    def _loader(self) -> BilmDataLoader:
        if not isinstance(self.data_loader, BilmDataLoader):
            raise ConfigurationError("The trainer elmo-bilm needs the data loader elmo-bilm.")
        return self.data_loader

    @property
    def _is_over(self) -> bool:
        scheduler = self._learning_rate_scheduler
        return isinstance(scheduler, LinearDecay) and scheduler.is_over

    def _should_stop_early(self) -> bool:
        return self._is_over or type(self._metric_tracker).should_stop_early(self._metric_tracker)

    def _gather(self, state: Dict[str, Any]) -> list:
        """What every process has, in the order of their ranks."""
        if not self._distributed:
            return [state]
        states = [None] * self._world_size
        torch.distributed.all_gather_object(states, state)
        return states
