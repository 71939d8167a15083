from typing import Dict, List, Tuple

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper, Seq2SeqEncoder

from elmo_plugin.modules import tuning
from elmo_plugin.modules.recurrent.cells import gru
from elmo_plugin.modules.seq2seq_encoders.bigru import BiGru


def make_encoder() -> BiGru:
    torch.manual_seed(1)
    encoder = BiGru(5, 6)
    for layer in (encoder.forward_layer, encoder.backward_layer):
        torch.nn.init.normal_(layer.bias)
    return encoder


def make_batch(
    lengths: List[int], dtype: torch.dtype = torch.float
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Padding holds NaN, so that any use of it shows."""
    torch.manual_seed(2)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(*mask.shape, 5, dtype=dtype)
    return inputs.masked_fill(~mask.unsqueeze(2), float("nan")), mask


def with_torch_s_names(encoder: BiGru, gradients: bool = False) -> Dict[str, torch.Tensor]:
    """Parameters or their gradients; of torch's second biases only that of the candidate."""
    state = {}
    for layer, suffix in (
        (encoder.forward_layer, "_l0"),
        (encoder.backward_layer, "_l0_reverse"),
    ):
        inputs, recurrent, bias = (
            parameter.grad if gradients else parameter.detach()
            for parameter in (layer.input.weight, layer.recurrent.weight, layer.bias)
        )
        state[f"weight_ih{suffix}"] = inputs
        state[f"weight_hh{suffix}"] = torch.cat([recurrent[6:], recurrent[:6]])
        state[f"bias_ih{suffix}"] = bias[6:]
        state[f"bias_hh{suffix}"] = torch.cat([torch.zeros(12).to(bias), bias[:6]])
    return state


def torch_twin(encoder: BiGru) -> torch.nn.GRU:
    twin = torch.nn.GRU(encoder.input_size, encoder.hidden_size, 1, True, True, 0.0, True)
    twin.to(encoder.forward_layer.bias.dtype)
    twin.load_state_dict(with_torch_s_names(encoder))
    return twin


@pytest.mark.parametrize("dtype, tolerance", [(torch.float, 1e-5), (torch.double, 1e-12)])
def test_equals_torch_in_outputs_and_gradients(dtype, tolerance):
    encoder = make_encoder().to(dtype)
    twin = torch_twin(encoder)
    inputs, mask = make_batch([3, 7, 1, 0, 6, 7], dtype)
    ours = inputs.nan_to_num().requires_grad_()
    theirs = inputs.nan_to_num().requires_grad_()
    output, expected = encoder(ours, mask), PytorchSeq2SeqWrapper(twin)(theirs, mask)
    torch.testing.assert_close(output, expected, rtol=tolerance, atol=tolerance)

    weights = torch.randn_like(output)
    (output * weights).sum().backward()
    (expected * weights).sum().backward()
    wanted = {name: parameter.grad for name, parameter in twin.named_parameters()}
    found = with_torch_s_names(encoder, gradients=True)
    wanted["inputs"], found["inputs"] = theirs.grad, ours.grad
    for name, gradient in wanted.items():
        if "bias_hh" in name:
            found[name], gradient = found[name][12:], gradient[12:]
        assert (found[name] - gradient).norm() <= 10 * tolerance * gradient.norm(), name


@pytest.mark.parametrize("how", ["compiled", "not compiled", "too large", "double"])
@pytest.mark.parametrize("lengths", [[5], [3, 7], [6, 6], [4, 0], [0, 5, 2], [2] * 15, [2] * 16])
def test_equals_torch_without_gradients_however_few_sentences_there_are(monkeypatch, lengths, how):
    if how == "not compiled":
        monkeypatch.setattr(gru, "compiled_kernels", lambda: None)
    if how == "too large":
        monkeypatch.setattr(tuning, "MAX_COMPILED_GRU_WEIGHT", 0)
    dtype = torch.double if how == "double" else torch.float
    encoder = make_encoder().to(dtype).eval()
    inputs, mask = make_batch(lengths, dtype)
    for _ in range(2):
        expected = PytorchSeq2SeqWrapper(torch_twin(encoder))(inputs.nan_to_num(), mask).detach()
        with torch.no_grad():
            torch.testing.assert_close(encoder(inputs, mask), expected)
        torch.testing.assert_close(encoder(inputs, mask).detach(), expected)
        with torch.no_grad():
            for parameter in encoder.parameters():
                parameter.mul_(1.5)
        encoder.eval()


def test_padding_and_batch_order_change_nothing():
    encoder = make_encoder().double()
    inputs, mask = make_batch([4, 0, 2, 6, 1], torch.double)
    output = encoder(inputs, mask)
    assert bool((output[~mask] == 0).all())
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(encoder(inputs[order], mask[order]), output[order])
    wider = torch.nn.functional.pad(inputs, (0, 0, 0, 2), value=float("nan"))
    padded = encoder(wider, torch.nn.functional.pad(mask, (0, 2)))
    torch.testing.assert_close(padded[:, :6], output)
    assert bool((padded[:, 6:] == 0).all())
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        alone = encoder(inputs[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(alone[0], output[row, :length])


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3)])
def test_a_batch_without_tokens_gives_zeros_and_no_gradient(shape):
    encoder = make_encoder()
    mask = torch.zeros(shape, dtype=torch.bool)
    output = encoder(torch.full((*shape, 5), float("nan")), mask)
    assert output.shape == (*shape, 12) and bool((output == 0).all())
    output.sum().backward()
    assert all(not parameter.grad.any() for parameter in encoder.parameters())
    with torch.no_grad():
        assert encoder(torch.zeros(*shape, 5), mask).shape == (*shape, 12)


def test_weights_begin_orthogonal_and_biases_at_zero():
    torch.manual_seed(1)
    encoder = BiGru(5, 6)
    for layer in (encoder.forward_layer, encoder.backward_layer):
        for block in layer.recurrent.weight.split(6):
            torch.testing.assert_close(block @ block.t(), torch.eye(6))
        bound = (6 / (5 + 6)) ** 0.5
        assert 0.9 * bound < layer.input.weight.abs().max().item() <= bound
        assert layer.bias.tolist() == [0.0] * 24


def test_halves_of_autocast_stay_near_and_keep_the_type_of_the_inputs():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 7, 1])
    expected = encoder(inputs, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = encoder(inputs, mask)
    assert output.dtype == torch.float
    torch.testing.assert_close(output, expected, rtol=0.1, atol=0.05)


def test_is_built_from_its_name_and_tells_its_widths():
    params = {"type": "elmo-bigru", "input_size": 5, "hidden_size": 6}
    encoder = Seq2SeqEncoder.from_params(Params(params))
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (5, 12)
    assert encoder.is_bidirectional()


def test_a_wrong_width_is_named():
    with pytest.raises(ConfigurationError, match="inputs 5 wide but received 4. Set `input_size`"):
        make_encoder()(torch.zeros(1, 2, 4), torch.ones(1, 2, dtype=torch.bool))
