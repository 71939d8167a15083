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
from elmo_plugin.training import AtomicCheckpointer, LinearDecay, save_atomically

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
    def _train_epoch(self, epoch: int) -> Dict[str, float]:
        metrics = super()._train_epoch(epoch)
        if self._epochs_completed == self._start_after_epochs_completed and "loss" in metrics:
            # AllenNLP divides the losses since the recovery by all batches of the epoch.
            num_batches = self._batches_in_epoch_completed
            num_trained = num_batches - self._start_after_batches_in_epoch_completed
            metrics["loss"] *= num_batches / num_trained
        return metrics

    @overrides
    def _try_train(self) -> Tuple[Dict[str, Any], int]:
        self._metric_tracker.should_stop_early = self._should_stop_early
        if self._distributed and self.cuda_device.type == "cpu":
            self._share_cores()
        return super()._try_train()

    @overrides
    def _maybe_restore_checkpoint(self) -> None:
        # Says now what is wrong, not at the first checkpoint.
        model, loader = self._language_model, self._loader
        self._check_checkpointer()
        averaged = self._moving_average and self._moving_average._parameters
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
        model.load_training_state(ours["processes"][self._rank])
        if self._moving_average:
            # AllenNLP averages copies from the checkpoint from now on, which learn no more.
            self._moving_average._parameters = averaged
        epochs, batches = (
            self._start_after_epochs_completed,
            self._start_after_batches_in_epoch_completed,
        )
        loader.start_at(epochs, batches * self._num_gradient_accumulation_steps)
        # AllenNLP counts the batches of the started epoch again, but not those of earlier ones.
        self._total_batches_completed = ours["total_batches_completed"] - batches
        if self._validation_data_loader is not None:
            for _ in range(epochs):
                # Shuffled, it is read in another order every time.
                iter(self._validation_data_loader)
        if epochs and not batches:
            self._end_epoch()

    def _share_cores(self) -> None:
        """Threads of several processes that outnumber the cores wait for each other, tenfold."""
        if "OMP_NUM_THREADS" not in os.environ:
            torch.set_num_threads(max(1, torch.get_num_threads() // self._world_size))

    def _end_epoch(self) -> None:
        """What a run killed after the checkpoint at the end of an epoch may not have come to."""
        if self._metric_tracker.is_best_so_far():
            self._best_model_filename = os.path.join(self._serialization_dir, "best.th")
            if self._primary:
                self._save_best()
        if self._should_stop_early():
            self._num_epochs = self._start_after_epochs_completed

    def _save_best(self) -> None:
        average = self._moving_average
        if average is not None:
            average.assign_average_value()
        save_atomically(self.model.state_dict(), self._best_model_filename)
        if average is not None:
            average.restore()

    def _check_checkpointer(self) -> None:
        saves_alone = not isinstance(self._checkpointer, (AtomicCheckpointer, type(None)))
        if self._distributed and saves_alone:
            raise ConfigurationError(
                "The trainer elmo-bilm expected the checkpointer elmo-atomic where several "
                f"processes train, found {type(self._checkpointer).__name__}: its processes would "
                "wait for each other for ever. Set `trainer.checkpointer.type`."
            )

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
