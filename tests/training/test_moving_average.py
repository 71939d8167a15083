"""Averages of weights, and what becomes of them when a run is killed and recovered."""

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Instance, Vocabulary
from allennlp.data.data_loaders import SimpleDataLoader
from allennlp.data.fields import TensorField
from allennlp.models import Model
from allennlp.training.callbacks import TrainerCallback
from allennlp.training.checkpointer import Checkpointer
from allennlp.training.gradient_descent_trainer import GradientDescentTrainer
from allennlp.training.moving_average import MovingAverage

from elmo_plugin.modules.linear.packed import PackedLinear
from elmo_plugin.training import RecoverableMovingAverage

NUM_EPOCHS, NUM_BATCHES = 4, 5


class Killed(Exception):
    """Simulates that the process is killed."""


class Kill(TrainerCallback):
    """At a batch, counted from the first of all."""

    def __init__(self, at: int) -> None:
        super().__init__("")
        self.left = at

    def on_batch(self, *args, **kwargs):
        self.left -= 1
        if self.left == 0:
            raise Killed


class Line(Model):
    """Records its weights whenever it is called outside training."""

    def __init__(self, vocab: Vocabulary) -> None:
        super().__init__(vocab)
        self.linear = torch.nn.Linear(3, 1)
        with torch.no_grad():
            self.linear.weight.fill_(0.5)
            self.linear.bias.zero_()
        self.validated = []

    def forward(self, inputs, target):
        if not self.training:
            self.validated.append(self.linear.weight.detach().clone())
        return {"loss": (self.linear(inputs).squeeze(1) - target).square().mean()}


def loader():
    generator = torch.Generator().manual_seed(0)
    instances = [
        Instance({"inputs": TensorField(inputs), "target": TensorField(inputs.sum())})
        for inputs in torch.randn(4 * NUM_BATCHES, 3, generator=generator)
    ]
    return SimpleDataLoader(instances, 4, vocab=Vocabulary())


def make(folder, kind, at=0):
    folder.mkdir(exist_ok=True)
    model = Line(Vocabulary())
    average = MovingAverage.from_params(
        Params({"type": kind, "decay": 0.9}), parameters=list(model.named_parameters())
    )
    trainer = GradientDescentTrainer(
        model,
        torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
        loader(),
        validation_data_loader=loader(),
        num_epochs=NUM_EPOCHS,
        serialization_dir=str(folder),
        checkpointer=Checkpointer(folder, save_every_num_batches=2),
        moving_average=average,
        callbacks=[Kill(at)] if at else [],
        cuda_device=-1,
        run_confidence_checks=False,
    )
    return trainer, model, average


def run(folder, kind="elmo-exponential", killed_at=0):
    """The model at the end, what was validated, the averages and the best weights on disk."""
    if killed_at:
        with pytest.raises(Killed):
            make(folder, kind, at=killed_at)[0].train()
    trainer, model, average = make(folder, kind)
    trainer.train()
    best = torch.load(folder / "best.th", weights_only=True)
    return model.state_dict(), model.validated[-1], average.state_dict()["shadows"], best


# In the first epoch before and after a checkpoint, after an epoch, in the last.
@pytest.mark.parametrize("killed_at", [1, 3, 6, 13, 19])
def test_a_recovered_run_ends_like_an_uninterrupted_one(tmp_path, killed_at):
    whole, recovered = run(tmp_path / "a"), run(tmp_path / "b", killed_at=killed_at)
    torch.testing.assert_close(recovered, whole, rtol=0, atol=0)


def test_averages_are_validated_and_saved_and_returned(tmp_path):
    model, validated, averages, best = run(tmp_path)
    for found in (model, best):
        torch.testing.assert_close(dict(found), averages, rtol=0, atol=0)
    assert torch.equal(validated, averages["linear.weight"])
    (checkpoint, *_) = sorted(tmp_path.glob("model_state_e4_*.th"))
    raw = torch.load(checkpoint, weights_only=True)
    assert not torch.allclose(raw["linear.weight"], averages["linear.weight"])


def test_allennlp_s_own_average_stands_still_after_a_recovery(tmp_path):
    # If this fails, this class is needed no longer.
    whole = run(tmp_path / "a", "exponential")
    recovered = run(tmp_path / "b", "exponential", killed_at=13)
    assert not torch.allclose(recovered[2]["linear.weight"], whole[2]["linear.weight"])
    torch.testing.assert_close(whole[2], run(tmp_path / "c")[2])


def test_the_average_is_that_of_the_formula():
    parameter = torch.nn.Parameter(torch.tensor([1.0]))
    average, expected = RecoverableMovingAverage([("x", parameter)], decay=0.6), 1.0
    for step, value in enumerate([3.0, -2.0, 5.0, 4.0, 1.0, 0.0, 7.0], start=1):
        with torch.no_grad():
            parameter.fill_(value)
        average.apply(step)
        decay = min(0.6, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
        assert average.state_dict()["shadows"]["x"].item() == pytest.approx(expected)
    average.assign_average_value()
    assert parameter.item() == pytest.approx(expected)
    average.restore()
    assert parameter.item() == 7.0


def test_layers_that_keep_a_copy_of_a_weight_notice_the_average():
    layer, inputs = PackedLinear(300, 900).eval(), torch.randn(8, 300)
    average = RecoverableMovingAverage(list(layer.named_parameters()))
    for _ in range(2):
        with torch.no_grad():
            before = layer(inputs)
            layer.weight.add_(1.0)
            average.assign_average_value()
            torch.testing.assert_close(layer(inputs), before)
            average.restore()
            assert not torch.allclose(layer(inputs), before, atol=1.0)
            layer.weight.sub_(1.0)
            layer.eval()
