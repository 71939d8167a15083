"""`Muon` against `torch.optim.Muon`, singular value decompositions and `elmo-adam`."""

import copy

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.training.optimizers import Optimizer

from elmo_plugin.training.optimizers import orthogonalised
from elmo_plugin.util import bfloat16
from tests.bilm.oracle import relative_error

# One group of two matrices, and one matrix by itself.
GROUPS = [[["0.weight"], {"blocks": 2}], [["2.weight"], {"blocks": 1}]]


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(7, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))


def make_optimizer(model, groups=GROUPS, **settings):
    params = Params({"type": "elmo-muon", "parameter_groups": copy.deepcopy(groups), **settings})
    return Optimizer.from_params(params, model_parameters=list(model.named_parameters()))


def step(model, optimizer, num_steps=1, first=0):
    for number in range(first, first + num_steps):
        inputs = torch.randn(11, 7, generator=torch.Generator().manual_seed(number))
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("shape", [(3, 5, 5), (2, 9, 4), (4, 6, 20)])
@pytest.mark.parametrize("dtype, bound", [(torch.float64, 1e-6), (torch.bfloat16, 0.1)])
def test_singular_values_become_nearly_one_and_vectors_stay(shape, dtype, bound):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    left, values, right = torch.linalg.svd(matrices.double(), full_matrices=False)
    values = values / values.norm(dim=1, keepdim=True)
    for _ in range(5):
        values = 3.4445 * values - 4.7750 * values**3 + 2.0315 * values**5
    assert values.min() > 0.6 and values.max() < 1.3
    found = orthogonalised(matrices, dtype)
    assert found.shape == shape and found.dtype == torch.float32
    assert relative_error(found, left @ torch.diag_embed(values) @ right) < bound


def test_matrices_do_not_influence_each_other():
    matrices = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(2))
    alone = torch.cat([orthogonalised(matrix.unsqueeze(0), torch.float64) for matrix in matrices])
    # Its scale does not matter to a matrix, so the first one would dominate the others.
    matrices[0] *= 1000.0
    assert relative_error(orthogonalised(matrices, torch.float64), alone) < 1e-6
    assert not orthogonalised(torch.zeros(1, 3, 2), torch.float32).any()


def test_a_gradient_that_overflows_is_skipped():
    model = make_model()
    optimizer = make_optimizer(model)
    before = copy.deepcopy(model.state_dict())
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.full((1, 7), 1e30)).square().sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_steps_are_those_of_torch_and_of_adam(with_bfloat16):
    ours, theirs = make_model(), make_model()
    step(ours, make_optimizer(ours, lr=0.01, momentum=0.9, betas=[0.8, 0.99]), num_steps=5)
    # Torch has no matrices below each other: these are parameters of their own.
    halves = [torch.nn.Parameter(half.clone()) for half in theirs[0].weight.split(6)]
    last = theirs[2].weight
    muon = torch.optim.Muon(
        [*halves, last],
        lr=0.01,
        momentum=0.9,
        weight_decay=0.0,
        adjust_lr_fn="match_rms_adamw",
    )
    adam = torch.optim.Adam([theirs[0].bias, theirs[2].bias], lr=0.01, betas=(0.8, 0.99))
    for number in range(5):
        inputs = torch.randn(11, 7, generator=torch.Generator().manual_seed(number))
        theirs.zero_grad()
        theirs(inputs).square().sum().backward()
        for half, gradient in zip(halves, theirs[0].weight.grad.split(6)):
            half.grad = gradient
        muon.step()
        adam.step()
        with torch.no_grad():
            theirs[0].weight.copy_(torch.cat(halves))
    before = make_model()
    for parameter, other, first in zip(ours.parameters(), theirs.parameters(), before.parameters()):
        # Both round to bfloat16 between their products, at different places.
        assert relative_error(parameter - first, other - first) < 0.05


def test_steps_are_in_float32_where_bfloat16_is_slow(without_bfloat16, monkeypatch):
    exact, rounded = make_model(), make_model()
    step(exact, make_optimizer(exact))
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", True)
    step(rounded, make_optimizer(rounded))
    for parameter, other in zip(exact.parameters(), rounded.parameters()):
        # Biases are updated by Adam.
        assert torch.equal(parameter, other) == (parameter.dim() == 1)


def test_an_update_is_as_large_as_one_of_adam():
    model = make_model()
    before = [layer.weight.clone() for layer in (model[0], model[2])]
    step(model, make_optimizer(model, lr=0.01))
    sizes = [
        (layer.weight - weight).square().mean().sqrt().item() / 0.01
        for layer, weight in zip((model[0], model[2]), before)
    ]
    assert all(0.1 < size < 0.3 for size in sizes), sizes


def test_a_group_may_have_its_own_rate():
    model, other = make_model(), make_model()
    groups = [[["0.weight"], {"blocks": 2, "lr": 0.0}]]
    step(model, make_optimizer(model, groups, lr=0.01), num_steps=3)
    assert torch.equal(model[0].weight, other[0].weight)
    assert not torch.equal(model[2].weight, other[2].weight)


def test_parameters_without_a_gradient_stay_and_gradients_remain():
    model = make_model()
    before = model[0].weight.clone()
    model[0].weight.requires_grad_(False)
    optimizer = make_optimizer(model)
    step(model, optimizer)
    assert torch.equal(model[0].weight, before)
    assert model[2].weight.grad is not None


def test_a_restored_state_continues_bit_for_bit(tmp_path):
    whole, halved = make_model(), make_model()
    step(whole, make_optimizer(whole), num_steps=6)
    optimizer = make_optimizer(halved)
    step(halved, optimizer, num_steps=3)
    torch.save(optimizer.state_dict(), tmp_path / "state.th")
    again = make_optimizer(halved)
    again.load_state_dict(torch.load(tmp_path / "state.th", weights_only=True))
    step(halved, again, num_steps=3, first=3)
    for pair in zip(whole.parameters(), halved.parameters()):
        assert torch.equal(*pair)


@pytest.mark.parametrize(
    "settings, found",
    [
        (None, "found none"),
        ({"lr": 0.1}, "found none"),
        ({"blocks": 2, "lr": 0.1, "momentum": 0.5}, "found momentum"),
        ({"blocks": 2, "weight_decay": 0.5, "betas": 0.5}, "found betas, weight_decay"),
        ({"blocks": 5}, "found 0.weight of shape"),
        ({"blocks": -2}, "found 0.weight of shape"),
        ({"blocks": 0}, "found 0.weight of shape"),
    ],
)
def test_groups_that_are_no_matrices_or_have_settings_of_adam_are_refused(settings, found):
    with pytest.raises(ConfigurationError, match=f"elmo-muon: .*`blocks`.*{found}"):
        make_optimizer(make_model(), settings and [[["0.weight"], settings]])


def test_a_vector_is_refused():
    with pytest.raises(ConfigurationError, match=r"found 0.bias of shape \(12,\)"):
        make_optimizer(make_model(), [[["0.bias"], {"blocks": 1}]])
