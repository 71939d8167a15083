"""Checkpoints that are there whole or not at all, and when they are written."""

import resource

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.trainer import TrainerCheckpoint

from elmo_plugin.training import AtomicCheckpointer
from elmo_plugin.util.weights import save_atomically


class ScriptedTrainer:
    """Has been through so many epochs and batches."""

    def __init__(self, is_primary: bool = True) -> None:
        self.is_primary = is_primary
        self.moment = (0, 0)
        self.asked = []

    def get_checkpoint_state(self):
        self.asked.append(self.moment)
        if not self.is_primary:
            return None
        epochs, batches = self.moment
        state = {"epochs_completed": epochs, "batches_in_epoch_completed": batches}
        return TrainerCheckpoint({"weight": torch.tensor([float(batches)])}, state)


def make(folder, **settings) -> AtomicCheckpointer:
    params = Params({"type": "elmo-atomic", "save_every_num_batches": 3, **settings})
    checkpointer = Checkpointer.from_params(params, serialization_dir=str(folder))
    assert isinstance(checkpointer, AtomicCheckpointer)
    return checkpointer


def train(checkpointer, trainer, batches=range(1, 8), epoch=0):
    """Moments at which a checkpoint was saved."""
    saved = []
    for number in batches:
        trainer.moment = (epoch, number)
        if checkpointer.maybe_save_checkpoint(trainer, epoch, number):
            saved.append(number)
    return saved


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_saved_checkpoint_is_loaded_again(tmp_path):
    checkpointer = make(tmp_path)
    assert train(checkpointer, ScriptedTrainer()) == [3, 6]
    for reader in (make(tmp_path), Checkpointer(tmp_path)):
        model_state, trainer_state = reader.load_checkpoint()
        assert model_state["weight"].item() == 6.0
        assert trainer_state["batches_in_epoch_completed"] == 6


def test_old_and_incomplete_checkpoints_are_removed(tmp_path):
    train(make(tmp_path), ScriptedTrainer(), range(1, 13))
    # Of a run that was killed.
    (tmp_path / "training_state_e0_b13.th").write_bytes(b"half a file")
    make(tmp_path).load_checkpoint()
    assert names(tmp_path) == [
        "model_state_e0_b12.th",
        "model_state_e0_b9.th",
        "training_state_e0_b12.th",
        "training_state_e0_b9.th",
    ]


def test_all_processes_are_asked_for_their_part_at_the_same_moments(tmp_path):
    asked = []
    for rank in range(2):
        checkpointer, trainer = make(tmp_path), ScriptedTrainer(is_primary=rank == 0)
        checkpointer._rank = rank
        for epoch in range(2):
            train(checkpointer, trainer, range(1, 12), epoch)
            # The end of an epoch.
            train(checkpointer, trainer, [0], epoch + 1)
        # Each state is built once: it may be as large as the model.
        asked.append(trainer.asked)
    assert asked[0] == asked[1]
    assert asked[0] == [(0, 3), (0, 6), (0, 9), (1, 0), (1, 3), (1, 6), (1, 9), (2, 0)]


def test_a_full_disk_is_named_and_an_interruption_stays_one(tmp_path):
    path, limits = tmp_path / "state.th", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=f"File too large: '{path}'"):
            save_atomically({"a": torch.zeros(100_000)}, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(KeyboardInterrupt):
        save_atomically({"a": torch.zeros(100_000), "b": Interrupted()}, path)
    assert names(tmp_path) == []


class Interrupted:
    def __reduce__(self):
        raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["model_state", "training_state"])
@pytest.mark.parametrize("size", [0, 500, None])
def test_a_damaged_checkpoint_is_named_and_without_it_the_one_before_is_used(tmp_path, kind, size):
    train(make(tmp_path), ScriptedTrainer())
    damaged = tmp_path / f"{kind}_e0_b6.th"
    if size is None and kind == "training_state":
        damaged.unlink()
    else:
        damaged.write_bytes(damaged.read_bytes()[: size or 0])
    with pytest.raises(ConfigurationError) as raised:
        make(tmp_path).load_checkpoint()
    assert f"{damaged} cannot be read" in str(raised.value)
    for path in tmp_path.glob("*_e0_b6.th"):
        path.unlink()
    assert make(tmp_path).load_checkpoint().trainer_state["batches_in_epoch_completed"] == 3
