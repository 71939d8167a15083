import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.scalar_mix import ScalarMix as AllenNlpMix

from elmo_plugin import ScalarMix
from tests.bilm.oracle import relative_error


@pytest.fixture
def layers():
    return torch.randn(3, 2, 4, 6, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def mask():
    return torch.tensor([[True, True, True, True], [True, True, False, False]])


def learned(num_layers=3, **settings):
    mix = ScalarMix(num_layers, **settings)
    with torch.no_grad():
        mix.layer_scores.copy_(torch.tensor([0.5, -1.0, 2.0])[:num_layers])
        mix.gamma.fill_(1.7)
    return mix


@pytest.mark.parametrize("shape", [(), (1,)], ids=["archives before version 0.3", "now"])
def test_gamma_may_be_stored_as_a_scalar(shape):
    mix = torch.nn.ModuleList([ScalarMix(3)])
    gamma = torch.full(shape, 1.7)
    mix.load_state_dict({"0.layer_scores": torch.zeros(3), "0.gamma": gamma})
    assert mix[0].gamma.tolist() == gamma.view(1).tolist() and mix[0].gamma.requires_grad
    ScalarMix(3).load_state_dict(mix[0].state_dict())


def test_a_new_mix_is_the_average(layers, mask):
    torch.testing.assert_close(ScalarMix(3)(layers, mask), layers.mean(dim=0))


@pytest.mark.parametrize("ours, theirs", [(False, False), ("batch", True)])
def test_learned_weights_mix_as_allennlps(layers, mask, ours, theirs):
    mix, oracle = learned(layer_norm=ours), AllenNlpMix(3, theirs, [0.5, -1.0, 2.0])
    with torch.no_grad():
        oracle.gamma.fill_(1.7)
    expected = oracle(list(layers), mask)
    assert relative_error(mix(layers, mask)[mask], expected[mask]) < 1e-6


def test_fixed_weights_are_used_as_they_are(layers, mask):
    mix = ScalarMix(3, fixed_weights=[0.0, 1.0, -0.5])
    torch.testing.assert_close(mix(layers, mask), layers[1] - 0.5 * layers[2])
    assert list(mix.parameters()) == []
    assert mix.weights().tolist() == [0.0, 1.0, -0.5]
    assert "fixed_weights" in mix.state_dict()


def test_each_token_is_normalised_over_its_own_numbers(layers, mask):
    expected = torch.zeros_like(layers[0])
    for weight, layer in zip(learned().weights(), layers):
        for row in range(2):
            for token in range(4):
                x = layer[row, token]
                x = (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + 1e-5)
                expected[row, token] += 1.7 * weight * x
    torch.testing.assert_close(learned(layer_norm=True)(layers, mask), expected)


@pytest.mark.parametrize("layer_norm", [False, True, "batch"])
def test_what_stands_at_padding_does_not_matter(layers, mask, layer_norm):
    mix, other = learned(layer_norm=layer_norm), layers.clone()
    other[:, ~mask] = 1e4
    torch.testing.assert_close(mix(other, mask)[mask], mix(layers, mask)[mask])


@pytest.mark.parametrize("layer_norm", [False, True, "batch"])
def test_a_bfloat16_bilm_is_mixed_in_float32(layers, mask, layer_norm):
    mix = learned(layer_norm=layer_norm)
    mixed = mix(layers.bfloat16(), mask)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, mix(layers.bfloat16().float(), mask))


def test_another_number_of_layers_is_refused(layers, mask):
    with pytest.raises(ConfigurationError, match="expected 2 layers, found 3"):
        ScalarMix(2)(layers, mask)
