"""Gradients of the biLM against finite differences."""

import copy

import pytest
import torch

from tests.bilm.oracle import relative_error

TINY = dict(
    filters=[[1, 2], [2, 3]],
    embedding=2,
    max_characters_per_token=4,
    dim=3,
    projection_dim=2,
)
BATCH = [["ab", "c", "x"], [], ["b"]]


@pytest.mark.parametrize(
    "changes",
    [
        dict(warm_up=True),
        dict(use_skip_connections=False, n_highway=2),
        dict(activation="tanh", n_layers=3),
    ],
    ids=["warm-up", "no residuals", "tanh"],
)
def test_gradients_equal_finite_differences(make_bilm, changes):
    bilm = make_bilm(seed=3, **TINY, **changes).double()
    names, parameters = zip(*bilm.named_parameters())
    ids = bilm.characters.batch_ids(BATCH)

    def layers(*values):
        return torch.func.functional_call(bilm, dict(zip(names, values)), (ids,)).layers

    # Fast: compares random projections of the two Jacobians instead of every column.
    assert torch.autograd.gradcheck(layers, parameters, fast_mode=True)


def test_gradients_do_not_depend_on_padding_or_company(make_bilm):
    bilm = make_bilm(seed=4).double()
    words = ["a", "word", "a"]

    def gradients(batch):
        bilm.zero_grad()
        layers = bilm(bilm.characters.batch_ids(batch)).layers[:, 0, : len(words) + 2]
        layers.square().sum().backward()
        return [parameter.grad.clone() for parameter in bilm.parameters()]

    for alone, together in zip(gradients([words]), gradients([words, ["x"] * 9, []])):
        assert relative_error(together, alone) < 1e-12


def test_a_frozen_character_encoder_gets_no_gradient(make_bilm):
    bilm = make_bilm()
    bilm.character_encoder.requires_grad_(False)
    bilm(bilm.characters.batch_ids([["a", "b"]])).layers.sum().backward()
    assert all(parameter.grad is None for parameter in bilm.character_encoder.parameters())
    assert all(parameter.grad is not None for parameter in bilm.lstm.parameters())


@pytest.mark.parametrize("fused", [False, True])
def test_results_follow_an_optimizer_step(make_bilm, fused):
    bilm = make_bilm()
    ids = bilm.characters.batch_ids([["a", "b"], ["c"]])
    with torch.no_grad():
        before = bilm(ids).layers
    bilm(ids).layers.square().sum().backward()
    torch.optim.Adam(bilm.parameters(), lr=0.1, fused=fused).step()
    with torch.no_grad():
        after = bilm(ids).layers
        assert relative_error(after, before) > 0.1
        # A copy has packed nothing yet.
        torch.testing.assert_close(after, copy.deepcopy(bilm)(ids).layers)
