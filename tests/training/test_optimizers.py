"""
The fused optimizers against AllenNLP's own; `Muon` against `torch.optim.Muon`, singular value
decompositions and `elmo-adam`.
"""

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
MUON = {"parameter_groups": GROUPS}


def make_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(7, 12), torch.nn.Tanh(), torch.nn.Linear(12, 3))


def make_optimizer(name, model, **settings):
    params = Params({"type": name, **copy.deepcopy(settings)})
    return Optimizer.from_params(params, model_parameters=list(model.named_parameters()))


def step(model, optimizer, num_steps=1, first=0):
    for number in range(first, first + num_steps):
        inputs = torch.randn(11, 7, generator=torch.Generator().manual_seed(number))
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize(
    "name, settings",
    [
        ("adam", {"lr": 0.05, "betas": [0.8, 0.99], "eps": 0.1, "weight_decay": 0.1}),
        ("adagrad", {"lr": 0.2, "initial_accumulator_value": 1.0, "lr_decay": 0.1}),
        ("adagrad", {"weight_decay": 0.1, "eps": 0.1}),
    ],
)
def test_fused_steps_are_those_of_allennlp(name, settings):
    ours, theirs, before = make_model(), make_model(), make_model()
    optimizer = make_optimizer(f"elmo-{name}", ours, **settings)
    # Parameters are passed over once.
    assert all(group["fused"] for group in optimizer.param_groups)
    step(ours, optimizer, num_steps=20)
    step(theirs, make_optimizer(name, theirs, **settings), num_steps=20)
    for pair in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(*pair, rtol=1e-5, atol=1e-6)
    assert (ours[0].weight - before[0].weight).abs().max() > 1e-3


each_kind = pytest.mark.parametrize(
    "name, settings", [("elmo-adam", {}), ("elmo-adagrad", {}), ("elmo-muon", MUON)]
)


@each_kind
def test_a_restored_state_continues_bit_for_bit(name, settings, tmp_path):
    whole, halved = make_model(), make_model()
    step(whole, make_optimizer(name, whole, **settings), num_steps=6)
    optimizer = make_optimizer(name, halved, **settings)
    step(halved, optimizer, num_steps=3)
    torch.save(optimizer.state_dict(), tmp_path / "state.th")
    optimizer = make_optimizer(name, halved, **settings)
    optimizer.load_state_dict(torch.load(tmp_path / "state.th", weights_only=True))
    step(halved, optimizer, num_steps=3, first=3)
    for pair in zip(whole.parameters(), halved.parameters(), strict=True):
        assert torch.equal(*pair)


@each_kind
def test_a_group_may_have_its_own_rate(name, settings):
    own = {"lr": 0.0, "blocks": 2} if settings else {"lr": 0.0}
    model, before = make_model(), make_model()
    step(model, make_optimizer(name, model, lr=0.1, parameter_groups=[[["^0.weight"], own]]))
    assert torch.equal(model[0].weight, before[0].weight)
    assert not torch.equal(model[2].weight, before[2].weight)


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
    assert not orthogonalised(torch.zeros(shape), dtype).any()


def test_a_gradient_that_overflows_is_skipped():
    model = make_model()
    optimizer = make_optimizer("elmo-muon", model, **MUON)
    before = copy.deepcopy(model.state_dict())
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.full((1, 7), 1e30)).square().sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_steps_are_those_of_torch_and_of_adam(with_bfloat16):
    ours, theirs = make_model(), make_model()
    step(
        ours,
        make_optimizer("elmo-muon", ours, lr=0.01, momentum=0.9, betas=[0.8, 0.99], **MUON),
        num_steps=5,
    )
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
    step(exact, make_optimizer("elmo-muon", exact, **MUON))
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", True)
    step(rounded, make_optimizer("elmo-muon", rounded, **MUON))
    for parameter, other in zip(exact.parameters(), rounded.parameters()):
        # Biases are updated by Adam.
        assert torch.equal(parameter, other) == (parameter.dim() == 1)


def test_parameters_without_a_gradient_stay_and_gradients_remain():
    model = make_model()
    before = model[0].weight.clone()
    model[0].weight.requires_grad_(False)
    optimizer = make_optimizer("elmo-muon", model, **MUON)
    step(model, optimizer)
    assert torch.equal(model[0].weight, before)
    assert model[2].weight.grad is not None


@pytest.mark.parametrize(
    "group, found",
    [
        (None, "found none"),
        (["0.weight", {"blocks": 2, "lr": 0.1, "momentum": 0.5}], "found momentum"),
        (["0.weight", {"blocks": 5}], "found 0.weight of shape"),
        (["0.bias", {"blocks": 1}], r"found 0.bias of shape \(12,\)"),
    ],
)
def test_groups_that_are_no_matrices_or_have_settings_of_adam_are_refused(group, found):
    groups = group and [[[group[0]], group[1]]]
    with pytest.raises(ConfigurationError, match=f"elmo-muon: .*`blocks`.*{found}"):
        make_optimizer("elmo-muon", make_model(), parameter_groups=groups)
