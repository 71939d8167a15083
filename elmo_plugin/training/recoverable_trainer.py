import inspect
import json
import os
import random
from collections import Counter
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy
import torch
from allennlp.data import DataLoader, TensorDict
from allennlp.training.callbacks import ConfidenceChecksCallback, TrainerCallback
from allennlp.training.checkpointer import TrainerCheckpoint
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.moving_average import ExponentialMovingAverage, MovingAverage
from allennlp.training.trainer import Trainer
from overrides import overrides

from elmo_plugin.training.atomic_checkpointer import AtomicCheckpointer
from elmo_plugin.util.bfloat16 import autocast_bfloat16
from elmo_plugin.util.distributed import gathered, sum_over_processes
from elmo_plugin.util.errors import ConfigurationError, check_no_settings
from elmo_plugin.util.weights import read_state, save_atomically

# Experiments name AllenNLP's `exponential` so; this trainer restores both.
MovingAverage.register("elmo-exponential")(ExponentialMovingAverage)

# The key of what this trainer adds to the trainer state.
_KEY = "elmo-recoverable"
# The last one is an old name, which AllenNLP still reads.
_SETTINGS = {*inspect.signature(GradientDescentTrainer.__init__).parameters, "run_sanity_checks"}


def random_states(device: torch.device) -> Dict[str, Any]:
    """Random states of Python, NumPy, PyTorch and a GPU, which `weights_only` loading allows."""
    # `Any`, because the annotation of `get_state` also allows a dictionary.
    of_numpy: Any = numpy.random.get_state()
    name, keys, *rest = of_numpy
    states = {
        "python": random.getstate(),
        "numpy": (name, keys.tolist(), *rest),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def set_random_states(states: Dict[str, Any], device: torch.device) -> None:
    """Restores `random_states`; for a GPU, if `device` is one."""
    random.setstate(states["python"])
    numpy.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)


@Trainer.register("elmo-recoverable", constructor="from_partial_objects")
class RecoverableTrainer(GradientDescentTrainer):
    """
    AllenNLP's trainer, but a run that is killed and recovered ends with the same parameters and
    validation metrics as an uninterrupted one, bit for bit on a CPU. The training metrics of the
    interrupted epoch cover only the batches after the checkpoint. Use the checkpointer
    `elmo-atomic`, which distributed training requires.

    AllenNLP's checkpoints lack the states of the random generators, and the best weights if an
    epoch was interrupted at its end. Finished epochs are skipped here. In the interrupted one, the
    batches before the checkpoint are loaded again, but not trained on.

    The trainer calls two methods of the model's modules that have them. `before_checkpoint()` may
    write data that is not in the `state_dict`, such as ELMo's cache. After an epoch, the numbers of
    `epoch_metrics()`, such as ELMo's layer weights, are added to the training metrics.

    Not restored: states that a model carries between batches outside its `state_dict`, such as a
    `stateful` ELMo's; random numbers drawn by the workers of a lazy data loader; what a loader
    carries between epochs (`batches_per_epoch`; `simple` with `shuffle`).

    `mixed_precision` computes products in training in bfloat16, see `autocast_bfloat16`. Parameters
    and gradients stay float32. AllenNLP's `use_amp` is for GPUs only.
    """

    data_loader: DataLoader
    _callbacks: List[TrainerCallback]
    _best_model_filename: Any
    _should_validate_this_epoch: bool

    def __init__(self, *args: Any, mixed_precision: bool = False, **kwargs: Any) -> None:
        # AllenNLP's trainer ignores a setting that does not exist.
        check_no_settings(self, kwargs.keys() - _SETTINGS)
        super().__init__(*args, **kwargs)
        self._mixed_precision = mixed_precision
        if self._moving_average:
            _store_averages_only(self._moving_average)
        # The process state of the checkpoint from which this run continues, until its epoch begins.
        self._recovered: Optional[Dict[str, Any]] = None
        # The metrics of the epochs before that one.
        self._recovered_metrics: Dict[str, Any] = {}
        self._random_at_start: Dict[str, Any] = {}

    @overrides
    def batch_outputs(self, batch: TensorDict, for_training: bool) -> Dict[str, torch.Tensor]:
        is_mixed = for_training and self._mixed_precision
        # `autocast_bfloat16(..., False)` would disable AllenNLP's `use_amp`.
        with autocast_bfloat16(self.cuda_device) if is_mixed else nullcontext():
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
        }
        return TrainerCheckpoint(checkpoint.model_state, _without_numpy(checkpoint.trainer_state))

    def _process_state(self) -> Dict[str, Any]:
        """The part of a checkpoint that differs between processes: tensors and plain values."""
        now = random_states(self.cuda_device)
        return {
            "random_at_start": self._random_at_start if self._batches_in_epoch_completed else now,
            "random": now,
            "validates": self._should_validate_this_epoch,
        }

    def _load_process_state(self, state: Dict[str, Any]) -> None:
        """Restores `_process_state`; random states are restored when the epoch begins."""
        self._recovered = state

    @overrides
    def _maybe_restore_checkpoint(self) -> None:
        # Checked here, so that an error is raised before the first checkpoint.
        saves_alone = not isinstance(self._checkpointer, (AtomicCheckpointer, type(None)))
        if self._distributed and saves_alone:
            raise ConfigurationError(
                "Expected the checkpointer elmo-atomic for distributed training, found "
                f"{type(self._checkpointer).__name__}, with which the processes would deadlock. "
                "Set `trainer.checkpointer.type`."
            )
        super()._maybe_restore_checkpoint()
        if not (latest := self._checkpointer and self._checkpointer.find_latest_checkpoint()):
            return
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
        epochs = self._start_after_epochs_completed
        batches = self._start_after_batches_in_epoch_completed
        # AllenNLP counts the skipped batches of the interrupted epoch again.
        self._total_batches_completed = ours["total_batches_completed"] - batches
        for epoch in range(epochs):
            # An epoch may lack the metric of a rare label; the one before stays then.
            path = os.path.join(self._serialization_dir, f"metrics_epoch_{epoch}.json")
            self._recovered_metrics.update(json.loads(Path(path).read_text(encoding="utf-8")))
        if self._best_model_filename:
            # The run's folder may have been moved.
            self._best_model_filename = self._best_path
        if epochs and not batches:
            self._end_epoch(epochs)

    @property
    def _best_path(self) -> str:
        return os.path.join(self._serialization_dir, "best.th")

    def _end_epoch(self, epochs: int) -> None:
        """Finishes an epoch, in case the run was killed after the checkpoint at its end."""
        if self._recovered_metrics["best_epoch"] == epochs - 1:
            self._best_model_filename = self._best_path
            if self._primary:
                if self._moving_average:
                    self._moving_average.assign_average_value()
                self._save_model_state(self._best_path)
                if self._moving_average:
                    self._moving_average.restore()
        if self._should_stop_early():
            self._num_epochs = epochs

    @overrides
    def _save_model_state(self, path: str) -> None:
        model = self.model if self._ddp_wrapped_model is None else self._ddp_wrapped_model
        save_atomically(model.state_dict(), path)

    def _should_stop_early(self) -> bool:
        return self._metric_tracker.should_stop_early()

    @overrides
    def _try_train(self) -> Tuple[Dict[str, Any], int]:
        metrics, epoch = super()._try_train()
        if "epoch" not in metrics:
            # No epoch was left: AllenNLP returns the metrics of the best epoch only.
            return self._recovered_metrics or metrics, epoch
        return {**self._recovered_metrics, **metrics}, epoch

    @overrides
    def _train_epoch(self, epoch: int) -> Dict[str, float]:
        if epoch < self._start_after_epochs_completed:
            return {}
        recovered, self._recovered = self._recovered, None
        loader, num_batches = self.data_loader, 0
        if recovered is not None:
            set_random_states(recovered["random_at_start"], self.cuda_device)
            # Callbacks have set it for the first epoch.
            self._should_validate_this_epoch = recovered["validates"]
            num_batches = self._start_after_batches_in_epoch_completed
        self._random_at_start = random_states(self.cuda_device)
        # At the beginning of an epoch, the loader may draw before its first batch, for its length.
        if recovered is not None and num_batches:
            self.data_loader = _ResumedLoader(
                loader,
                num_batches * self._num_gradient_accumulation_steps,
                lambda: set_random_states(recovered["random"], self.cuda_device),
            )
        metrics = super()._train_epoch(epoch)
        self.data_loader = loader
        if num_batches and "loss" in metrics:
            # AllenNLP divides by the number of all batches, also the ones before the checkpoint.
            of_all = sum_over_processes(self._batches_in_epoch_completed)
            of_these = of_all - num_batches * self._world_size
            for name in {"loss", "reg_loss"}.intersection(metrics):
                metrics[name] *= of_all / of_these
        for module in self.model.modules():
            if hasattr(module, "epoch_metrics"):
                metrics.update(module.epoch_metrics())
        return metrics


def _store_averages_only(average: Any) -> None:
    """
    Leaves the averages in checkpoints. AllenNLP also stores copies of the parameters, which it
    averages after `--recover` instead of the trained ones.
    """

    def load(state: Dict[str, Any]) -> None:
        for name, shadow in average._shadows.items():
            shadow.copy_(state["shadows"][name])

    average.state_dict = lambda: {"shadows": average._shadows}
    average.load_state_dict = load


class _ResumedLoader:
    """
    Iterates over a loader. Calls `resume` after `num_batches`, before the next batch is requested,
    so that a prefetching loader draws from the restored random states.
    """

    def __init__(self, loader: DataLoader, num_batches: int, resume: Callable[[], None]) -> None:
        self._loader, self._num_batches, self._resume = loader, num_batches, resume

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[TensorDict]:
        batches = iter(self._loader)
        yield from islice(batches, self._num_batches)
        self._resume()
        yield from batches


def _without_numpy(value: Any) -> Any:
    """Replaces NumPy scalars, which metrics may return and `torch.load` refuses."""
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, dict):
        # torch's `MultiStepLR` has a `Counter` in its state.
        kind = Counter if isinstance(value, Counter) else dict
        return kind({_without_numpy(name): _without_numpy(part) for name, part in value.items()})
    if type(value) in (list, tuple, set):
        return type(value)(_without_numpy(part) for part in value)
    return value
