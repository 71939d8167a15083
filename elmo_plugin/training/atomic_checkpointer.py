import os
from typing import Any

import torch
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import Trainer
from overrides import overrides

__all__ = ["AtomicCheckpointer", "save_atomically"]


@Checkpointer.register("elmo-atomic")
class AtomicCheckpointer(Checkpointer):
    """
    AllenNLP's `Checkpointer`, but a run killed while it saves can still be recovered.

    AllenNLP writes the model's state under its final name, then the trainer's; killed in between,
    `--recover` finds half a checkpoint and fails. Here each file appears whole or not at all, and
    the model's, which AllenNLP looks for, last. All parameters are AllenNLP's.
    """

    @overrides
    def save_checkpoint(self, trainer: Trainer) -> None:
        checkpoint = trainer.get_checkpoint_state()
        if checkpoint is not None and (self._is_primary or self.state_is_sharded):
            moment = (
                checkpoint.trainer_state["epochs_completed"],
                checkpoint.trainer_state["batches_in_epoch_completed"],
            )
            save_atomically(checkpoint.trainer_state, self._training_state_path(*moment))
            save_atomically(checkpoint.model_state, self._model_state_path(*moment))
        # Finds the files written, and removes old ones.
        super().save_checkpoint(trainer)


def save_atomically(state: Any, path: str) -> None:
    """`torch.save` that leaves either the whole file under its name or what was there before."""
    unfinished = f"{path}.unfinished"
    with open(unfinished, "wb") as opened:
        torch.save(state, opened)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(unfinished, path)
