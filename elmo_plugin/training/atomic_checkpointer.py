from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional, Tuple

from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import Trainer, TrainerCheckpoint
from overrides import overrides

from elmo_plugin.util.weights import read_state, save_atomically


@Checkpointer.register("elmo-atomic")
class AtomicCheckpointer(Checkpointer):
    """
    AllenNLP's `Checkpointer`, but a run that is killed while it saves can be recovered. Files are
    complete or absent. The model state, by which AllenNLP finds the latest checkpoint, is written
    last. An unreadable or incomplete latest checkpoint is refused.
    """

    @overrides
    def maybe_save_checkpoint(
        self, trainer: Trainer, num_epochs_completed: int, num_batches_in_epoch_completed: int
    ) -> bool:
        moment = (num_epochs_completed, num_batches_in_epoch_completed)
        saved = super().maybe_save_checkpoint(trainer, *moment)
        if saved:
            # AllenNLP records this in the primary process only; the others would request another
            # checkpoint after every batch.
            self._record_save(*moment)
        return saved

    @overrides
    def load_checkpoint(self) -> Optional[TrainerCheckpoint]:
        if self._is_primary:
            # Incomplete checkpoints of a run that was killed.
            for path in Path(self._serialization_dir).glob("training_state_e*_b*.th"):
                if not path.with_name(path.name.replace("training", "model", 1)).exists():
                    path.unlink()
        paths = self.find_latest_checkpoint()
        if paths is None:
            return None
        checkpoint = TrainerCheckpoint(*(read_state(path, path) for path in paths))
        # A recovered run saves at the same batches as an uninterrupted one.
        self._record_save(*_moment(checkpoint))
        return checkpoint

    @overrides
    def save_checkpoint(self, trainer: Trainer) -> None:
        checkpoint = trainer.get_checkpoint_state()
        if checkpoint is not None:
            moment = _moment(checkpoint)
            save_atomically(checkpoint.trainer_state, self._training_state_path(*moment))
            save_atomically(checkpoint.model_state, self._model_state_path(*moment))
        # AllenNLP keeps the files that exist, and removes old checkpoints. It asks its trainer for
        # the state and nothing else; building it again would copy the model again.
        built: Any = SimpleNamespace(get_checkpoint_state=lambda: checkpoint)
        super().save_checkpoint(built)

    @overrides
    def _remove_checkpoint(self, epochs_completed: int, batches_in_epoch_completed: int) -> None:
        # With the checkpoint of batch 1, AllenNLP would also remove the one of batch 10.
        moment = (epochs_completed, batches_in_epoch_completed)
        for path in (self._model_state_path(*moment), self._training_state_path(*moment)):
            Path(path).unlink(missing_ok=True)

    def _record_save(self, epochs_completed: int, batches_in_epoch_completed: int) -> None:
        self._last_save_num_epochs_completed = epochs_completed
        self._last_save_num_batches_in_epoch_completed = batches_in_epoch_completed


def _moment(checkpoint: TrainerCheckpoint) -> Tuple[int, int]:
    state = checkpoint.trainer_state
    return state["epochs_completed"], state["batches_in_epoch_completed"]
