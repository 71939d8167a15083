import inspect
import json
import os
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

import numpy
import torch
from allennlp.data import DataLoader, TensorDict
from allennlp.nn.util import move_to_device
from allennlp.training.callbacks import ConfidenceChecksCallback, TrainerCallback
from allennlp.training.checkpointer import TrainerCheckpoint
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.trainer import Trainer
from overrides import overrides

from elmo_plugin.training.atomic_checkpointer import AtomicCheckpointer
from elmo_plugin.training.metric_states import load_metric_states, metric_states
from elmo_plugin.training.random_states import random_states, set_random_states
from elmo_plugin.training.resumed_loader import ResumedLoader
from elmo_plugin.util.bfloat16 import autocast_bfloat16
from elmo_plugin.util.distributed import gathered, sum_over_processes
from elmo_plugin.util.errors import ConfigurationError, check_no_settings
from elmo_plugin.util.weights import read_state, save_atomically

# The key of what this trainer adds to the trainer state.
_KEY = "elmo-recoverable"
# The last one is an old name, which AllenNLP still reads.
_SETTINGS = {*inspect.signature(GradientDescentTrainer.__init__).parameters, "run_sanity_checks"}


@Trainer.register("elmo-recoverable", constructor="from_partial_objects")
class RecoverableTrainer(GradientDescentTrainer):
    """
    AllenNLP's trainer, but a run that is killed and recovered ends with the same parameters and
    metrics as an uninterrupted one, bit for bit on a CPU.

    AllenNLP's checkpoints lack the states of the random generators (for dropout and the order of
    batches), the accumulated losses and metrics of the current epoch, the metrics of the previous
    epochs, and the best weights if an epoch was interrupted at its end. They are added here.
    Finished epochs are skipped. In the interrupted epoch, the batches before the checkpoint are
    loaded again, but not trained on.

    Before a checkpoint, the trainer calls `before_checkpoint()` on each module of the model that
    has this method, so that a module can write data to disk that is not in its `state_dict`, such
    as ELMo's cache. After an epoch, it adds the numbers that `epoch_metrics()` of a module returns
    to the metrics of training, such as the weights of ELMo's layers.

    Not restored are states that a model carries between batches outside of its `state_dict`, such
    as those of a `stateful` ELMo, random numbers drawn by the workers of a lazy data loader, and
    what a loader carries from epoch to epoch (`batches_per_epoch`; `simple` with `shuffle`).

    Parameters are those of AllenNLP's `GradientDescentTrainer` and one more. Use it with the
    checkpointer `elmo-atomic`, which distributed training requires.

    # Parameters

    mixed_precision : `bool`, optional (default = `False`)
        Compute products in training in bfloat16, see `autocast_bfloat16`; AllenNLP's `use_amp` is
        for GPUs only. Parameters and gradients are float32; validation is as without.

    # Raises

    `ConfigurationError`
        If a setting does not exist. AllenNLP's trainer ignores it.
    """

    data_loader: DataLoader
    _callbacks: List[TrainerCallback]
    _best_model_filename: Any
    _should_validate_this_epoch: bool

    def __init__(self, *args: Any, mixed_precision: bool = False, **kwargs: Any) -> None:
        check_no_settings(self, kwargs.keys() - _SETTINGS)
        super().__init__(*args, **kwargs)
        self._mixed_precision = mixed_precision
        self._record = _Record()
        self._callbacks.append(self._record)
        # The process state of the checkpoint from which this run continues.
        self._recovered: Optional[Dict[str, Any]] = None
        self._random_at_start: Dict[str, Any] = {}

    @overrides
    def batch_outputs(self, batch: TensorDict, for_training: bool) -> Dict[str, torch.Tensor]:
        if not (for_training and self._mixed_precision):
            # Even `autocast_bfloat16(..., False)` would disable AllenNLP's `use_amp`.
            return super().batch_outputs(batch, for_training)
        with autocast_bfloat16(self.cuda_device):
            return super().batch_outputs(batch, for_training)

    @overrides
    def get_checkpoint_state(self) -> Optional[TrainerCheckpoint]:
        for module in self.model.modules():
            if hasattr(module, "before_checkpoint"):
                module.before_checkpoint()
        processes = gathered(self._process_state())
        checkpoint = super().get_checkpoint_state()
        if checkpoint is None:
            return None
        checkpoint.trainer_state[_KEY] = {
            "processes": processes,
            "total_batches_completed": self._total_batches_completed,
            "metrics": json.dumps(_without_numpy(self._record.metrics)),
        }
        return TrainerCheckpoint(checkpoint.model_state, _without_numpy(checkpoint.trainer_state))

    def _process_state(self) -> Dict[str, Any]:
        """The part of a checkpoint that differs between processes: tensors and plain values."""
        now = random_states(self.cuda_device)
        return {
            "random_at_start": self._random_at_start if self._batches_in_epoch_completed else now,
            "random": now,
            "losses": dict(self._record.losses),
            "metrics": metric_states(self.model),
            "validates": self._should_validate_this_epoch,
        }

    def _load_process_state(self, state: Dict[str, Any]) -> None:
        """Restores `_process_state`; random states are restored when the epoch begins."""
        self._recovered, self._record.losses = state, dict(state["losses"])
        load_metric_states(self.model, move_to_device(state["metrics"], self.cuda_device))

    @overrides
    def _maybe_restore_checkpoint(self) -> None:
        # Checked here, so that an error is raised before the first checkpoint.
        self._check_checkpointer()
        averaged = self._moving_average and self._moving_average._parameters
        super()._maybe_restore_checkpoint()
        if not (latest := self._checkpointer and self._checkpointer.find_latest_checkpoint()):
            return
        if self._moving_average:
            # AllenNLP has replaced them by copies in the checkpoint, which are not trained, and has
            # left what it has loaded on the CPU.
            self._moving_average._parameters = averaged
            for loaded in (self._moving_average._shadows, self._moving_average._backups):
                loaded.update((name, loaded[name].to(each.device)) for name, each in averaged)
        # `ConfidenceChecksCallback` removes its hooks in the first batch of the first epoch only.
        self._callbacks = [
            TrainerCallback("") if isinstance(callback, ConfidenceChecksCallback) else callback
            for callback in self._callbacks
        ]
        # Memory-mapped: the state of the optimizer is not read a second time.
        self._restore(read_state(latest[1], latest[1], check=False), latest[1])

    def _restore(self, trainer_state: Dict[str, Any], path: str) -> None:
        ours = trainer_state.get(_KEY)
        if ours is None or len(ours["processes"]) != self._world_size:
            raise ConfigurationError(
                f"{path} was written by another trainer or another number of processes. Recover "
                "with the same trainer and number of processes."
            )
        self._load_process_state(ours["processes"][self._rank])
        self._record.metrics = json.loads(ours["metrics"])
        if self._best_model_filename:
            # The run's folder may have been moved.
            self._best_model_filename = os.path.join(self._serialization_dir, "best.th")
        batches = self._start_after_batches_in_epoch_completed
        # AllenNLP counts the skipped batches of the interrupted epoch again.
        self._total_batches_completed = ours["total_batches_completed"] - batches
        if self._start_after_epochs_completed and not batches:
            self._end_epoch()

    def _end_epoch(self) -> None:
        """Finishes an epoch, in case the run was killed after the checkpoint at its end."""
        if self._record.metrics["best_epoch"] == self._start_after_epochs_completed - 1:
            self._best_model_filename = os.path.join(self._serialization_dir, "best.th")
            if self._primary:
                self._save_best()
        if self._should_stop_early():
            self._num_epochs = self._start_after_epochs_completed

    def _save_best(self) -> None:
        if self._moving_average:
            self._moving_average.assign_average_value()
        self._save_model_state(self._best_model_filename)
        if self._moving_average:
            self._moving_average.restore()

    @overrides
    def _save_model_state(self, path: str) -> None:
        model = self.model if self._ddp_wrapped_model is None else self._ddp_wrapped_model
        save_atomically(model.state_dict(), path)

    def _should_stop_early(self) -> bool:
        return self._metric_tracker.should_stop_early()

    @overrides
    def _try_train(self) -> Tuple[Dict[str, Any], int]:
        metrics, epoch = super()._try_train()
        # If no epoch is left, AllenNLP returns the metrics of the best epoch only.
        return self._record.metrics or metrics, epoch

    @overrides
    def _train_epoch(self, epoch: int) -> Dict[str, float]:
        if epoch < self._start_after_epochs_completed:
            return {}
        recovered, self._recovered = self._recovered, None
        if recovered is not None:
            set_random_states(recovered["random_at_start"], self.cuda_device)
            # Callbacks have set it for the first epoch.
            self._should_validate_this_epoch = recovered.get(
                "validates", self._should_validate_this_epoch
            )
        self._random_at_start = random_states(self.cuda_device)
        loader = self.data_loader
        num_batches = self._start_after_batches_in_epoch_completed
        # At the beginning of an epoch, the loader may draw before its first batch, for its length.
        if recovered is not None and num_batches:
            self.data_loader = ResumedLoader(
                loader,
                num_batches * self._num_gradient_accumulation_steps,
                lambda: set_random_states(recovered["random"], self.cuda_device),
            )
        metrics = super()._train_epoch(epoch)
        self.data_loader = loader
        return self._whole_epoch_metrics(metrics)

    def _whole_epoch_metrics(self, metrics: Dict[str, float]) -> Dict[str, float]:
        """The metrics of an epoch, including its part before the checkpoint."""
        if "loss" not in metrics:
            # The checkpoint was saved after the last batch, so AllenNLP trained none.
            metrics.update(self.model.get_metrics(reset=True))
        num_batches = sum_over_processes(self._batches_in_epoch_completed)
        for name, loss in self._record.losses.items():
            metrics[name] = sum_over_processes(float(loss)) / num_batches
        self._record.losses = {}
        for module in self.model.modules():
            if hasattr(module, "epoch_metrics"):
                metrics.update(module.epoch_metrics())
        return metrics

    def _check_checkpointer(self) -> None:
        saves_alone = not isinstance(self._checkpointer, (AtomicCheckpointer, type(None)))
        if self._distributed and saves_alone:
            raise ConfigurationError(
                "Expected the checkpointer elmo-atomic for distributed training, found "
                f"{type(self._checkpointer).__name__}, with which the processes would deadlock. "
                "Set `trainer.checkpointer.type`."
            )


def _without_numpy(value: Any) -> Any:
    """Replaces NumPy scalars, which metrics may return, but `torch.load` refuses."""
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, dict):
        # torch's `MultiStepLR` has a `Counter` in its state.
        kind = Counter if isinstance(value, Counter) else dict
        return kind({_without_numpy(name): _without_numpy(part) for name, part in value.items()})
    if type(value) in (list, tuple, set):
        return type(value)(_without_numpy(part) for part in value)
    return value


class _Record(TrainerCallback):
    """
    Records what AllenNLP's trainer keeps in local variables only: the accumulated losses of the
    current epoch, and the metrics of the previous one.
    """

    def __init__(self) -> None:
        super().__init__("")
        self.losses: Dict[str, float] = {}
        self.metrics: Dict[str, Any] = {}

    @overrides(check_signature=False)
    def on_batch(
        self,
        trainer: GradientDescentTrainer,
        batch_inputs: List[TensorDict],
        batch_outputs: List[Dict[str, Any]],
        batch_metrics: Dict[str, Any],
        *_: Any,
        is_training: bool,
        **kwargs: Any,
    ) -> None:
        if not is_training:
            return
        self._add("loss", batch_metrics["batch_loss"])
        for outputs in batch_outputs:
            if "reg_loss" in outputs:
                self._add("reg_loss", (outputs["reg_loss"] / len(batch_inputs)).item())

    @overrides(check_signature=False)
    def on_epoch(
        self, trainer: GradientDescentTrainer, metrics: Dict[str, Any], **kwargs: Any
    ) -> None:
        # AllenNLP keeps metrics that only an earlier epoch had, such as those of a rare label.
        for name, value in self.metrics.items():
            metrics.setdefault(name, value)
        self.metrics = dict(metrics)

    def _add(self, name: str, loss: float) -> None:
        self.losses[name] = self.losses.get(name, 0.0) + loss
