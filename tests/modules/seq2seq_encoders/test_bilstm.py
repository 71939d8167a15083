from typing import Dict, List, Tuple

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper, Seq2SeqEncoder

from elmo_plugin.modules.seq2seq_encoders.bilstm import BiLstm


def make_encoder(num_layers: int = 2) -> BiLstm:
    torch.manual_seed(1)
    return BiLstm(5, 6, num_layers)


def make_batch(
    lengths: List[int], dtype: torch.dtype = torch.float
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Padding holds NaN, so that any use of it shows."""
    torch.manual_seed(2)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(*mask.shape, 5, dtype=dtype)
    return inputs.masked_fill(~mask.unsqueeze(2), float("nan")), mask


def with_torch_s_names(encoder: BiLstm, gradients: bool = False) -> Dict[str, torch.Tensor]:
    """Parameters or their gradients; torch has a second bias, at zero here."""
    state = {}
    for layers, suffix in ((encoder.forward_layers, ""), (encoder.backward_layers, "_reverse")):
        for number, layer in enumerate(layers):
            for name, parameter in (
                ("weight_ih", layer.input.weight),
                ("weight_hh", layer.recurrent.weight),
                ("bias_ih", layer.bias),
            ):
                values = parameter.grad if gradients else parameter.detach()
                state[f"{name}_l{number}{suffix}"] = values
            state[f"bias_hh_l{number}{suffix}"] = torch.zeros_like(layer.bias)
    return state


def torch_twin(encoder: BiLstm) -> torch.nn.LSTM:
    twin = torch.nn.LSTM(
        encoder.input_size,
        encoder.hidden_size,
        len(encoder.forward_layers),
        batch_first=True,
        bidirectional=True,
    )
    twin.load_state_dict(with_torch_s_names(encoder))
    return twin.to(encoder.forward_layers[0].bias.dtype)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float, 1e-5), (torch.double, 1e-12)])
def test_equals_torch_in_outputs_and_gradients(num_layers, dtype, tolerance):
    encoder = make_encoder(num_layers).to(dtype)
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
        if "bias_hh" not in name:
            assert (found[name] - gradient).norm() <= 10 * tolerance * gradient.norm(), name


def test_equals_torch_without_gradients():
    encoder = make_encoder().eval()
    inputs, mask = make_batch([3, 7, 1, 6])
    expected = PytorchSeq2SeqWrapper(torch_twin(encoder))(inputs.nan_to_num(), mask)
    with torch.no_grad():
        torch.testing.assert_close(encoder(inputs, mask), expected)
    # The other path, and the first one again after it.
    torch.testing.assert_close(encoder(inputs, mask), expected)
    with torch.no_grad():
        encoder.forward_layers[0].bias.add_(1.0)
        encoder.forward_layers[0].input.weight.mul_(2.0)
        encoder.eval()
        expected = PytorchSeq2SeqWrapper(torch_twin(encoder))(inputs.nan_to_num(), mask)
        torch.testing.assert_close(encoder(inputs, mask), expected)


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


def test_padding_has_no_gradient():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 1, 0])
    inputs.requires_grad_()
    encoder(inputs, mask).sum().backward()
    assert bool((inputs.grad[~mask] == 0).all()) and bool((inputs.grad[mask] != 0).all())


def test_fixed_inputs_get_no_gradient_and_weights_the_same():
    gradients = []
    for learns_inputs in (True, False):
        encoder = make_encoder()
        inputs, mask = make_batch([3, 7, 1])
        inputs.requires_grad_(learns_inputs)
        encoder(inputs, mask).square().sum().backward()
        gradients.append([parameter.grad for parameter in encoder.parameters()])
    torch.testing.assert_close(*gradients)


def test_begins_with_orthogonal_states_and_open_forget_gates():
    for layer in (*make_encoder().forward_layers, *make_encoder().backward_layers):
        for block in layer.recurrent.weight.split(6):
            torch.testing.assert_close(block @ block.t(), torch.eye(6))
        bound = (6 / (layer.input.in_features + 6)) ** 0.5
        largest = layer.input.weight.abs().max().item()
        assert 0.9 * bound < largest <= bound
        assert layer.bias.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 12


def test_halves_of_autocast_stay_near_and_keep_the_type_of_the_inputs():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 7, 1])
    expected = encoder(inputs, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = encoder(inputs, mask)
    assert output.dtype == torch.float
    torch.testing.assert_close(output, expected, rtol=0.1, atol=0.05)


def test_is_built_from_its_name_and_tells_its_widths():
    params = {"type": "elmo-bilstm", "input_size": 5, "hidden_size": 6, "num_layers": 2}
    encoder = Seq2SeqEncoder.from_params(Params(params))
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (5, 12)
    assert encoder.is_bidirectional()


def test_wrong_settings_and_widths_are_named():
    with pytest.raises(ConfigurationError, match="`num_layers` >= 1, not 0"):
        BiLstm(5, 6, num_layers=0)
    with pytest.raises(ConfigurationError, match="inputs 5 wide but received 4. Set `input_size`"):
        make_encoder()(torch.zeros(1, 2, 4), torch.ones(1, 2, dtype=torch.bool))


def alone_and_together(encoder, inputs):
    """Sentences of three tokens, each in a batch of its own, and all in one."""
    mask = torch.ones(inputs.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        return torch.cat([encoder(row[None], mask[:1]) for row in inputs]), encoder(inputs, mask)


def test_one_sentence_gives_what_it_gives_among_many():
    encoder = BiLstm(5, 4, num_layers=2)
    torch.testing.assert_close(*alone_and_together(encoder, torch.randn(40, 3, 5)))


def test_a_single_sentence_notices_that_weights_have_changed():
    encoder, inputs = BiLstm(5, 4), torch.randn(40, 3, 5)
    before, _ = alone_and_together(encoder, inputs)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(1.5)
    after, expected = alone_and_together(encoder, inputs)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, expected)
    encoder(inputs, torch.ones(40, 3, dtype=torch.bool)).sum().backward()
    for parameter in encoder.parameters():
        # As an optimizer that leaves no trace.
        parameter.data.sub_(parameter.grad)
    torch.testing.assert_close(*alone_and_together(encoder, inputs))
    encoder.half().float()
    torch.testing.assert_close(*alone_and_together(encoder, inputs))


@pytest.mark.parametrize("lengths", [[5], [3, 7], [6, 6], [4, 0], [0, 5, 2], [2] * 15, [2] * 16])
def test_however_few_are_read_nothing_learning_changes_nothing(lengths):
    encoder = make_encoder()
    inputs, mask = make_batch(lengths)
    expected = encoder(inputs, mask)
    with torch.no_grad():
        torch.testing.assert_close(encoder(inputs, mask), expected.detach())
