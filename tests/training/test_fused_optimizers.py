"""The fused optimizers against AllenNLP's own."""

import copy

import pytest
import torch
from allennlp.common import Params
from allennlp.training.optimizers import Optimizer

import elmo_plugin.training  # noqa: F401

SETTINGS = [
    ("adam", {}),
    ("adam", {"lr": 0.05, "betas": [0.8, 0.99], "eps": 0.1, "weight_decay": 0.1}),
    ("adagrad", {}),
    ("adagrad", {"lr": 0.2, "initial_accumulator_value": 1.0, "lr_decay": 0.1}),
    ("adagrad", {"weight_decay": 0.1, "eps": 0.1}),
]


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.Tanh(), torch.nn.Linear(5, 3))


def make_optimizer(name, model, settings):
    params = Params({"type": name, **copy.deepcopy(settings)})
    return Optimizer.from_params(params, model_parameters=list(model.named_parameters()))


def step(model, optimizer, num_steps=1, first=0):
    for number in range(first, first + num_steps):
        inputs = torch.randn(11, 7, generator=torch.Generator().manual_seed(number))
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()


def assert_close(model, other):
    for pair in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name, settings", SETTINGS)
def test_steps_are_those_of_allennlp(name, settings):
    ours, theirs = make_model(), make_model()
    before = make_model()
    step(ours, make_optimizer(f"elmo-{name}", ours, settings), num_steps=20)
    step(theirs, make_optimizer(name, theirs, settings), num_steps=20)
    assert_close(ours, theirs)
    assert (ours[0].weight - before[0].weight).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["elmo-adam", "elmo-adagrad"])
def test_a_restored_state_continues(name, tmp_path):
    whole, halved = make_model(), make_model()
    step(whole, make_optimizer(name, whole, {}), num_steps=6)
    optimizer = make_optimizer(name, halved, {})
    step(halved, optimizer, num_steps=3)
    torch.save(optimizer.state_dict(), tmp_path / "state.th")
    optimizer = make_optimizer(name, halved, {})
    optimizer.load_state_dict(torch.load(tmp_path / "state.th", weights_only=True))
    step(halved, optimizer, num_steps=3, first=3)
    assert all(
        torch.equal(*pair) for pair in zip(whole.parameters(), halved.parameters(), strict=True)
    )


@pytest.mark.parametrize("name", ["elmo-adam", "elmo-adagrad"])
def test_parameter_groups_have_rates_of_their_own(name):
    groups = [[["^0"], {"lr": 0.0}]]
    model = make_model()
    before = copy.deepcopy(model)
    step(model, make_optimizer(name, model, {"lr": 0.1, "parameter_groups": groups}))
    assert torch.equal(model[0].weight, before[0].weight)
    assert not torch.equal(model[2].weight, before[2].weight)


@pytest.mark.parametrize("name", ["elmo-adam", "elmo-adagrad"])
def test_parameters_are_passed_over_once(name):
    (group,) = make_optimizer(name, make_model(), {}).param_groups
    assert group["fused"]
