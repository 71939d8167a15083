"""Makes a training wait in a batch, where a test kills it."""

import time
from pathlib import Path

from allennlp.training.callbacks import TrainerCallback


@TrainerCallback.register("elmo-test-stand-still")
class StandingStill(TrainerCallback):
    """
    Waits in a batch, before its checkpoint, while the file `hold_e{epoch}_b{batch}` exists beside
    the folder of the run. Batches are counted from 1, as in the names of checkpoints.
    """

    def on_batch(
        self, trainer, inputs, outputs, metrics, epoch, batch_number, is_training, **kwargs
    ):
        hold = Path(self.serialization_dir).parent / f"hold_e{epoch}_b{batch_number}"
        while is_training and hold.exists():
            time.sleep(0.01)
