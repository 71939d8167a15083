from typing import Dict, List, Tuple, Type

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper, Seq2SeqEncoder

from elmo_plugin.modules.recurrent import compiled_scan
from elmo_plugin.modules.seq2seq_encoders.bidirectional import BidirectionalEncoder, BiGru, BiLstm

Kind = Type[BidirectionalEncoder]


@pytest.fixture(params=[BiLstm, BiGru])
def kind(request) -> Kind:
    return request.param


def make_encoder(kind: Kind, num_layers: int = 2) -> BidirectionalEncoder:
    torch.manual_seed(1)
    encoder = kind(5, 6, num_layers)
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return encoder


def make_batch(
    lengths: List[int], dtype: torch.dtype = torch.float
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Padding holds NaN, so that any use of it shows."""
    torch.manual_seed(2)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(*mask.shape, 5, dtype=dtype)
    return inputs.masked_fill(~mask.unsqueeze(2), float("nan")), mask


def with_torch_s_names(
    encoder: BidirectionalEncoder, gradients: bool = False
) -> Dict[str, torch.Tensor]:
    """Parameters or their gradients. Of torch's second biases we have only the GRU candidate's."""
    state = {}
    for layers, direction in ((encoder.forward_layers, ""), (encoder.backward_layers, "_reverse")):
        for number, layer in enumerate(layers):
            inputs, recurrent, bias = (
                parameter.grad if gradients else parameter.detach()
                for parameter in (layer.input.weight, layer.recurrent.weight, layer.bias)
            )
            second_bias = torch.zeros_like(bias)
            if isinstance(encoder, BiGru):
                recurrent = torch.cat([recurrent[6:], recurrent[:6]])
                second_bias, bias = torch.cat([torch.zeros(12).to(bias), bias[:6]]), bias[6:]
            suffix = f"_l{number}{direction}"
            state[f"weight_ih{suffix}"] = inputs
            state[f"weight_hh{suffix}"] = recurrent
            state[f"bias_ih{suffix}"] = bias
            state[f"bias_hh{suffix}"] = second_bias
    return state


def torch_twin(encoder: BidirectionalEncoder) -> torch.nn.RNNBase:
    kind = torch.nn.GRU if isinstance(encoder, BiGru) else torch.nn.LSTM
    twin = kind(5, 6, len(encoder.forward_layers), batch_first=True, bidirectional=True)
    twin.to(encoder.forward_layers[0].bias.dtype).load_state_dict(with_torch_s_names(encoder))
    return twin


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float, 1e-5), (torch.double, 1e-12)])
def test_equals_torch_in_outputs_and_gradients(kind, num_layers, dtype, tolerance):
    encoder = make_encoder(kind, num_layers).to(dtype)
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
            # The others are not parameters of ours.
            found[name], gradient = found[name][12:18], gradient[12:18]
            if kind is BiLstm:
                continue
        assert (found[name] - gradient).norm() <= 10 * tolerance * gradient.norm(), name


@pytest.mark.parametrize("how", ["compiled", "not compiled", "double"])
@pytest.mark.parametrize("lengths", [[5], [3, 7], [6, 6], [4, 0], [0, 5, 2], [2] * 15, [2] * 16])
def test_equals_torch_without_gradients_however_few_sentences_there_are(
    monkeypatch, kind, lengths, how
):
    if how == "not compiled":
        monkeypatch.setattr(compiled_scan, "compiled_kernels", lambda: None)
    dtype = torch.double if how == "double" else torch.float
    encoder = make_encoder(kind).to(dtype).eval()
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


def test_padding_and_batch_order_change_nothing(kind):
    encoder = make_encoder(kind).double()
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
def test_a_batch_without_tokens_gives_zeros_and_no_gradient(kind, shape):
    encoder = make_encoder(kind)
    mask = torch.zeros(shape, dtype=torch.bool)
    output = encoder(torch.full((*shape, 5), float("nan")), mask)
    assert output.shape == (*shape, 12) and bool((output == 0).all())
    output.sum().backward()
    assert all(not parameter.grad.any() for parameter in encoder.parameters())
    with torch.no_grad():
        assert encoder(torch.zeros(*shape, 5), mask).shape == (*shape, 12)


def test_padding_has_no_gradient(kind):
    encoder = make_encoder(kind)
    inputs, mask = make_batch([3, 1, 0])
    inputs.requires_grad_()
    encoder(inputs, mask).sum().backward()
    assert bool((inputs.grad[~mask] == 0).all()) and bool((inputs.grad[mask] != 0).all())


def test_fixed_inputs_get_no_gradient_and_weights_the_same(kind):
    gradients = []
    for learns_inputs in (True, False):
        encoder = make_encoder(kind)
        inputs, mask = make_batch([3, 7, 1])
        inputs.requires_grad_(learns_inputs)
        encoder(inputs, mask).square().sum().backward()
        gradients.append([parameter.grad for parameter in encoder.parameters()])
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize(
    "kind, biases", [(BiLstm, [0.0] * 6 + [1.0] * 6 + [0.0] * 12), (BiGru, [0.0] * 24)]
)
def test_begins_with_orthogonal_states_and_open_forget_gates(kind, biases):
    torch.manual_seed(1)
    encoder = kind(5, 6, 2)
    for layer in (*encoder.forward_layers, *encoder.backward_layers):
        for block in layer.recurrent.weight.split(6):
            torch.testing.assert_close(block @ block.t(), torch.eye(6))
        bound = (6 / (layer.input.in_features + 6)) ** 0.5
        assert 0.9 * bound < layer.input.weight.abs().max().item() <= bound
        assert layer.bias.tolist() == biases


def test_halves_of_autocast_stay_near_and_keep_the_type_of_the_inputs(kind):
    encoder = make_encoder(kind)
    inputs, mask = make_batch([3, 7, 1])
    expected = encoder(inputs, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = encoder(inputs, mask)
    assert output.dtype == torch.float
    torch.testing.assert_close(output, expected, rtol=0.1, atol=0.05)


@pytest.mark.parametrize("name", ["elmo-bilstm", "elmo-bigru"])
def test_is_built_from_its_name_and_tells_its_widths(name):
    params = {"type": name, "input_size": 5, "hidden_size": 6, "num_layers": 2}
    encoder = Seq2SeqEncoder.from_params(Params(params))
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (5, 12)
    assert encoder.is_bidirectional()


@pytest.mark.parametrize("name", ["elmo-bilstm", "elmo-bigru"])
def test_an_initializer_can_draw_pytorch_s_uniform_weights(name):
    bound = 1 / 400**0.5
    uniform = {"regexes": [[".*", {"type": "uniform", "a": -bound, "b": bound}]]}
    params = {"type": name, "input_size": 5, "hidden_size": 400, "initializer": uniform}
    torch.manual_seed(1)
    encoder = Seq2SeqEncoder.from_params(Params(params))
    torch_s = torch.nn.LSTM(5, 400) if name == "elmo-bilstm" else torch.nn.GRU(5, 400)
    for part, parameter in encoder.named_parameters():
        expected = torch_s.weight_hh_l0 if "recurrent" in part else torch_s.bias_hh_l0
        for measure in (torch.std, torch.max, torch.min):
            torch.testing.assert_close(measure(parameter), measure(expected), rtol=0.1, atol=0)


def test_wrong_settings_and_widths_are_named(kind):
    with pytest.raises(ConfigurationError, match="Expected `num_layers` of at least 1, found 0"):
        kind(5, 6, num_layers=0)
    with pytest.raises(ConfigurationError, match="inputs 5 wide but received 4. Set `input_size`"):
        make_encoder(kind)(torch.zeros(1, 2, 4), torch.ones(1, 2, dtype=torch.bool))


def alone_and_together(encoder, inputs):
    """Sentences of three tokens, each in a batch of its own, and all in one."""
    mask = torch.ones(inputs.shape[:2], dtype=torch.bool)
    with torch.no_grad():
        return torch.cat([encoder(row[None], mask[:1]) for row in inputs]), encoder(inputs, mask)


def test_a_single_sentence_notices_that_weights_have_changed(kind):
    encoder, inputs = kind(5, 4), torch.randn(40, 3, 5)
    before, together = alone_and_together(encoder, inputs)
    torch.testing.assert_close(before, together)
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
