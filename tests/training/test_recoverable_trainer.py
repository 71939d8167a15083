"""A recovered run has the parameters and validation metrics of an uninterrupted one."""

import copy
import json
import random
import re
from pathlib import Path

import numpy
import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import Model
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.metrics import CategoricalAccuracy

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.elmo.cache.prefetch import PrefetchingDataLoader
from elmo_plugin.training import RecoverableTrainer

NUM_EPOCHS, NUM_BATCHES = 3, 6
# Of training, the interrupted epoch has the metrics of the batches after the checkpoint.
MAY_DIFFER = re.compile("training_|memory")


class Killed(Exception):
    """Simulates that the process is killed."""


@TrainerCallback.register("elmo-test-kill")
class Kill(TrainerCallback):
    """Kills training at the batch number `at`, counted from its first batch; 0: never."""

    at = 0

    def on_batch(self, *args, is_training, **kwargs):
        Kill.at -= is_training
        if Kill.at == 0 and is_training:
            raise Killed


@Model.register("elmo-test-noisy")
class NoisyModel(Model):
    """Draws from every random generator, and has a metric that only some epochs report."""

    def __init__(self, vocab: Vocabulary, **kwargs) -> None:
        super().__init__(vocab, **kwargs)
        self.embedding = torch.nn.Embedding(vocab.get_vocab_size(), 3)
        self.linear = torch.nn.Linear(3, vocab.get_vocab_size("labels"))
        self.dropout = torch.nn.Dropout(0.3)
        self.accuracies = {"accuracy": CategoricalAccuracy()}
        self.register_buffer("num_validated", torch.tensor(0))

    def forward(self, tokens, tags, metadata=None):
        noise = random.random() + numpy.random.rand() if self.training else 0.0
        hidden = self.dropout(self.embedding(tokens["tokens"]["tokens"])) + noise
        logits = self.linear(hidden)
        self.accuracies["accuracy"](logits, tags)
        self.num_validated += not self.training
        loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), tags)
        return {"loss": loss}

    def get_metrics(self, reset=False):
        metrics = {"accuracy": self.accuracies["accuracy"].get_metric(reset)}
        if reset and not self.training:
            metrics["num_validated"] = self.num_validated.item()
            if self.num_validated <= 6:
                metrics["rare"] = 1.0
        return metrics


@Model.register("elmo-test-numpy")
class NumpyModel(NoisyModel):
    """Its metrics are numbers of NumPy."""

    def get_metrics(self, reset=False):
        return {name: numpy.float64(value) for name, value in super().get_metrics(reset).items()}


@pytest.fixture
def experiment(tmp_path):
    draw = random.Random(0)
    for name, size in (("train", 4 * NUM_BATCHES), ("dev", 10)):
        sentences = ([draw.randint(0, 9) for _ in range(draw.randint(1, 9))] for _ in range(size))
        lines = (" ".join(f"w{n}###{n % 3}" for n in sentence) for sentence in sentences)
        (tmp_path / name).write_text("\n".join(lines))
    sampler = {"type": "bucket", "batch_size": 4, "sorting_keys": ["tokens"], "padding_noise": 0.9}
    return {
        "dataset_reader": {"type": "sequence_tagging"},
        "train_data_path": str(tmp_path / "train"),
        "validation_data_path": str(tmp_path / "dev"),
        "model": {
            "type": "elmo-test-noisy",
            "regularizer": {"regexes": [["linear", {"type": "l2", "alpha": 0.1}]]},
        },
        "data_loader": {"type": "elmo-prefetch", "batch_sampler": sampler},
        "trainer": {
            "type": "elmo-recoverable",
            "optimizer": {"type": "adam", "lr": 0.01},
            "num_epochs": NUM_EPOCHS,
            "validation_metric": "+accuracy",
            "checkpointer": {"type": "elmo-atomic", "save_every_num_batches": 2},
            "callbacks": ["elmo-test-kill"],
            "cuda_device": -1,
        },
    }


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run"


def train(experiment, folder: Path, killed_at=0):
    """The model; `None` if training was killed. What is in the folder is recovered."""
    Kill.at = killed_at
    try:
        return train_model(Params(copy.deepcopy(experiment)), folder, recover=folder.exists())
    except Killed:
        assert killed_at


def run(experiment, folder: Path, killed_at=()):
    """The metrics of validation, and the best parameters."""
    for at in (*killed_at, 0):
        train(experiment, folder, at)
    return results(folder)


def results(folder: Path):
    metrics = json.loads((folder / "metrics.json").read_text())
    equal = {name: metrics[name] for name in metrics if not MAY_DIFFER.search(name)}
    return equal, torch.load(folder / "best.th", weights_only=True)


def assert_same(found, expected):
    assert found[0] == expected[0]
    assert found[1].keys() == expected[1].keys()
    assert all(torch.equal(found[1][name], expected[1][name]) for name in expected[1])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Gives the results of an experiment that is not killed; the same `trainer` trains once."""
    found = {}

    def results_of(experiment):
        key = json.dumps([experiment["trainer"], experiment["data_loader"], experiment["model"]])
        if key not in found:
            found[key] = run(experiment, tmp_path_factory.mktemp("whole") / "run")
        return found[key]

    return results_of


# Before the first checkpoint, at and after one, before and after the end of an epoch, twice.
@pytest.mark.parametrize(
    "killed_at", [[1], [2], [3], [6], [7], [9], [12], [17], [18], [5, 1, 6], [13, 2, 2]]
)
def test_a_recovered_run_ends_like_an_uninterrupted_one(
    folder, experiment, uninterrupted, killed_at
):
    whole = uninterrupted(experiment)
    assert whole[0]["validation_rare"] == 1.0
    assert_same(run(experiment, folder, killed_at), whole)


# What changes in the experiment, or in its trainer.
VARIANTS = {
    "averages, a schedule and several batches a step": {
        "moving_average": {"type": "elmo-exponential", "decay": 0.9},
        "learning_rate_scheduler": {"type": "elmo-decay-by-batches", "factor": 0.5,
                                    "num_batches": 2},
        "num_gradient_accumulation_steps": 2,
        "checkpointer": {"type": "elmo-atomic", "save_every_num_batches": 1},
    },
    "no checkpoint within an epoch": {
        "learning_rate_scheduler": {"type": "elmo-reduce-on-plateau", "mode": "max", "patience": 0},
        "optimizer": {"type": "adadelta", "lr": 1.0},
        "checkpointer": {"type": "elmo-atomic"},
    },
    "no checkpoint at the end of an epoch": {
        "checkpointer": {"type": "elmo-atomic", "save_every_num_batches": 4,
                         "save_completed_epochs": False},
    },
    "mixed precision": {"mixed_precision": True},
    "patience": {"patience": 1, "num_epochs": 9, "validation_metric": "-num_validated"},
    "validation after every second epoch": {
        "callbacks": ["elmo-test-kill", {"type": "should_validate_callback",
                                         "validation_start": 0, "validation_interval": 2}],
    },
    # AllenNLP's sampler shuffles to count its batches.
    "a loader whose length draws random numbers": {
        "data_loader": {"batch_sampler": {"type": "max_tokens_sampler", "max_tokens": 12,
                                          "sorting_keys": ["tokens"]}},
        "checkpointer": {"type": "elmo-atomic", "save_every_num_batches": 4},
    },
    "metrics that are numbers of NumPy, and a state that holds a counter": {
        "model": {"type": "elmo-test-numpy"},
        "learning_rate_scheduler": {"type": "multi_step", "milestones": [1, 2]},
    },
}  # fmt: skip


@pytest.mark.parametrize("killed_at", [[3], [5], [8], [11]])
@pytest.mark.parametrize("variant", VARIANTS)
def test_recovery_is_exact_with_other_settings_of_the_trainer(
    folder, experiment, uninterrupted, variant, killed_at
):
    for name, value in VARIANTS[variant].items():
        (experiment if name in experiment else experiment["trainer"])[name] = value
    if "num_gradient_accumulation_steps" in VARIANTS[variant]:
        killed_at = [-(-batch // 2) for batch in killed_at]
    if "data_loader" in VARIANTS[variant]:
        # Its epochs are longer.
        killed_at = [batch + 9 for batch in killed_at]
    assert_same(run(experiment, folder, killed_at), uninterrupted(experiment))


def test_losses_of_a_recovered_epoch_are_means_over_the_batches_after_the_checkpoint(
    folder, experiment, monkeypatch
):
    found = []
    batch_outputs = RecoverableTrainer.batch_outputs

    def record(trainer, batch, for_training):
        outputs = batch_outputs(trainer, batch, for_training)
        if for_training:
            found.append([outputs["loss"].item(), outputs["reg_loss"].item()])
        return outputs

    monkeypatch.setattr(RecoverableTrainer, "batch_outputs", record)
    experiment["trainer"]["num_epochs"] = 1
    run(experiment, folder, [3])
    metrics = json.loads((folder / "metrics.json").read_text())
    # Killed in the third batch, recovered from the checkpoint after the second.
    assert len(found) == 3 + NUM_BATCHES - 2
    means = numpy.mean(found[3:], axis=0)
    assert [metrics["training_loss"], metrics["training_reg_loss"]] == pytest.approx(means)


def test_a_misspelt_setting_is_refused(folder, experiment):
    experiment["trainer"]["num_epoch"] = 3
    with pytest.raises(ConfigurationError, match="^RecoverableTrainer has no settings .*num_epoch"):
        run(experiment, folder)


def test_mixed_precision_is_for_training_only(folder, experiment, monkeypatch, with_bfloat16):
    found = {}
    forward = NoisyModel.forward

    def record(model, *args, **tensors):
        found.setdefault(model.training, set()).add(model.linear(torch.ones(1, 3)).dtype)
        return forward(model, *args, **tensors)

    monkeypatch.setattr(NoisyModel, "forward", record)
    experiment["trainer"].update(mixed_precision=True, num_epochs=1)
    _, best = run(experiment, folder)
    assert found == {True: {torch.bfloat16}, False: {torch.float32}}
    assert {value.dtype for name, value in best.items() if "weight" in name} == {torch.float32}


def test_recovering_a_finished_run_trains_nothing_and_keeps_all_metrics(folder, experiment):
    whole = run(experiment, folder)
    files = sorted(path.name for path in folder.iterdir())
    (folder / "model.tar.gz").write_bytes(b"half an archive")
    assert train(experiment, folder, killed_at=1) is not None
    assert_same(results(folder), whole)
    assert sorted(path.name for path in folder.iterdir()) == files
    assert Model.from_archive(folder / "model.tar.gz").state_dict().keys() == whole[1].keys()


def test_a_run_whose_folder_was_moved_finishes_with_its_best_weights(tmp_path, experiment):
    # The first epoch stays the best.
    experiment["trainer"]["validation_metric"] = "-num_validated"
    expected = run(experiment, tmp_path / "uninterrupted")
    assert train(experiment, tmp_path / "old", 2 * NUM_BATCHES + 3) is None
    (tmp_path / "old").rename(tmp_path / "new")
    train(experiment, tmp_path / "new")
    assert_same(results(tmp_path / "new"), expected)
    assert expected[0]["best_epoch"] == 0


def test_batches_of_finished_epochs_are_not_loaded_again(folder, experiment, monkeypatch):
    assert train(experiment, folder, 2 * NUM_BATCHES + 1) is None
    seen = []
    iterate = PrefetchingDataLoader.__iter__
    monkeypatch.setattr(
        PrefetchingDataLoader, "__iter__", lambda loader: seen.append(loader) or iterate(loader)
    )
    train(experiment, folder)
    # One epoch of training, one of validation.
    assert len(seen) == 2


def test_hooks_that_check_the_first_batch_do_not_stay_on_a_recovered_model(folder, experiment):
    assert train(experiment, folder, NUM_BATCHES) is None
    model = train(experiment, folder)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda state: state["elmo-recoverable"]["processes"].append({}), "number of processes"),
        (lambda state: state.pop("elmo-recoverable"), "written by another trainer"),
    ],
)
def test_a_checkpoint_of_another_trainer_is_refused(folder, experiment, change, message):
    run(experiment, folder)
    path = folder / f"training_state_e{NUM_EPOCHS}_b0.th"
    state = torch.load(path, weights_only=True)
    change(state)
    torch.save(state, path)
    with pytest.raises(ConfigurationError, match=message):
        train(experiment, folder)


@Model.register("elmo-test-scaled")
class ScaledModel(NoisyModel):
    def __init__(self, vocab: Vocabulary, **kwargs) -> None:
        super().__init__(vocab, **kwargs)
        self.linear.register_parameter("scale", torch.nn.Parameter(torch.ones(1)))
        self.linear.register_forward_hook(lambda linear, _, logits: logits * linear.scale)


def test_optimizers_may_have_stored_scalars_for_parameters_of_one_number(
    folder, experiment, tmp_path
):
    experiment["model"]["type"] = "elmo-test-scaled"
    experiment["trainer"]["num_epochs"] = 1
    expected = run(experiment, tmp_path / "whole")
    assert train(experiment, folder, killed_at=3) is None
    (path,) = folder.glob("training_state_*")
    state = torch.load(path, weights_only=True)
    moments = [each for each in state["optimizer"]["state"].values() if each["exp_avg"].dim() == 1]
    assert any(each["exp_avg"].shape == (1,) for each in moments)
    for each in moments:
        each.update({n: v.squeeze() for n, v in each.items() if n.startswith("exp_avg")})
    torch.save(state, path)
    assert_same(run(experiment, folder), expected)


def test_modules_are_notified_of_a_checkpoint_and_keep_their_mode(folder, experiment, monkeypatch):
    modes = []
    forward = NoisyModel.forward

    def with_frozen_part(model, *args, **tensors):
        model.embedding.eval()
        return forward(model, *args, **tensors)

    monkeypatch.setattr(NoisyModel, "forward", with_frozen_part)
    notify = lambda model: modes.append(model.embedding.training)  # noqa: E731
    monkeypatch.setattr(NoisyModel, "before_checkpoint", notify, raising=False)
    run(experiment, folder)
    assert len(modes) > NUM_EPOCHS and not any(modes)
