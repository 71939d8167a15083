"""The encoders against PyTorch's and AllenNLP's layers, and what all of them have in common."""

from typing import Dict, List, Tuple, Type

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper, Seq2SeqEncoder
from allennlp.modules.stacked_alternating_lstm import StackedAlternatingLstm

from elmo_plugin.modules.seq2seq_encoders import (
    BidirectionalEncoder,
    BiGru,
    BiLstm,
    HighwayLstm,
    RecurrentEncoder,
)
from tests.bilm.oracle import relative_error

BIDIRECTIONAL = [BiLstm, BiGru]


@pytest.fixture(params=[*BIDIRECTIONAL, HighwayLstm])
def kind(request) -> Type[RecurrentEncoder]:
    return request.param


def make_encoder(kind: Type[RecurrentEncoder], num_layers: int = 2) -> RecurrentEncoder:
    torch.manual_seed(1)
    settings = {"recurrent_dropout": 0.0} if kind is HighwayLstm else {}
    encoder = kind(5, 6, num_layers, **settings)
    for name, parameter in encoder.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    return encoder


def make_batch(
    lengths: List[int], dtype: torch.dtype = torch.float, num_tokens: int = 0
) -> Tuple[torch.Tensor, torch.Tensor]:
    """Padding holds NaN, so that any use of it shows."""
    torch.manual_seed(2)
    mask = torch.arange(max(num_tokens, *lengths, 0)) < torch.tensor(lengths).unsqueeze(1)
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


def twin_of(encoder: RecurrentEncoder) -> torch.nn.Module:
    """PyTorch's layers, or AllenNLP's highway layers, with the same weights."""
    if isinstance(encoder, HighwayLstm):
        twin = StackedAlternatingLstm(5, 6, len(encoder.layers), use_input_projection_bias=False)
        for theirs, ours in zip(highway_parameters(twin), highway_parameters(encoder)):
            theirs.data = ours.data.clone()
        return twin
    kind = torch.nn.GRU if isinstance(encoder, BiGru) else torch.nn.LSTM
    twin = kind(5, 6, len(encoder.forward_layers), batch_first=True, bidirectional=True)
    twin.to(encoder.forward_layers[0].bias.dtype).load_state_dict(with_torch_s_names(encoder))
    return twin


def highway_parameters(stack: torch.nn.Module) -> List[torch.Tensor]:
    """AllenNLP has the same gate order."""
    if isinstance(stack, HighwayLstm):
        parts = [(layer.input.weight, layer.recurrent.weight, layer.bias) for layer in stack.layers]
    else:
        cells = [layer.cell for layer in stack.lstm_layers]
        parts = [
            (cell.input_linearity.weight, cell.state_linearity.weight, cell.state_linearity.bias)
            for cell in cells
        ]
    return [part for layer in parts for part in layer]


def pairs_of_gradients(encoder: RecurrentEncoder, twin: torch.nn.Module):
    if isinstance(encoder, HighwayLstm):
        for ours, theirs in zip(highway_parameters(encoder), highway_parameters(twin)):
            yield ours.grad, theirs.grad
        return
    found = with_torch_s_names(encoder, gradients=True)
    for name, parameter in twin.named_parameters():
        if "bias_hh" not in name:
            yield found[name], parameter.grad
        elif isinstance(encoder, BiGru):
            yield found[name][12:18], parameter.grad[12:18]


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("dtype, tolerance", [(torch.float, 1e-5), (torch.double, 1e-12)])
def test_equals_its_twin_in_outputs_and_gradients(kind, num_layers, dtype, tolerance):
    encoder = make_encoder(kind, num_layers).to(dtype)
    twin = twin_of(encoder).to(dtype)
    # AllenNLP's highway layers take no empty sentence.
    inputs, mask = make_batch([3, 7, 1, 6, 7] + [0] * (kind is not HighwayLstm), dtype)
    ours = inputs.nan_to_num().requires_grad_()
    theirs = inputs.nan_to_num().requires_grad_()
    output, expected = encoder(ours, mask), PytorchSeq2SeqWrapper(twin)(theirs, mask)
    torch.testing.assert_close(output, expected, rtol=tolerance, atol=tolerance)
    weights = torch.randn_like(output)
    (output * weights).sum().backward()
    (expected * weights).sum().backward()
    for found, wanted in [(ours.grad, theirs.grad), *pairs_of_gradients(encoder, twin)]:
        assert (found - wanted).norm() <= 10 * tolerance * wanted.norm()


def test_padding_and_batch_order_change_nothing(kind):
    encoder = make_encoder(kind).double()
    inputs, mask = make_batch([4, 0, 2, 6, 1], torch.double)
    inputs.requires_grad_()
    output = encoder(inputs, mask)
    assert bool((output[~mask] == 0).all()) and bool((output[mask] != 0).all())
    (gradient,) = torch.autograd.grad(output.sum(), inputs, retain_graph=True)
    assert bool((gradient[~mask] == 0).all()) and bool((gradient[mask] != 0).all())
    order = torch.tensor([3, 1, 4, 0, 2])
    torch.testing.assert_close(encoder(inputs[order], mask[order]), output[order])
    wider = torch.nn.functional.pad(inputs, (0, 0, 0, 2), value=float("nan"))
    padded = encoder(wider, torch.nn.functional.pad(mask, (0, 2)))
    torch.testing.assert_close(padded[:, :6], output)
    assert bool((padded[:, 6:] == 0).all())
    for row, length in enumerate(mask.sum(dim=1).tolist()):
        alone = encoder(inputs[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(alone[0], output[row, :length])


def test_a_compiled_model_runs_it_as_it_is(kind):
    encoder, (inputs, mask) = make_encoder(kind), make_batch([3, 2])
    model = torch.nn.ModuleList([encoder])
    model.forward = lambda inputs, mask: 2 * encoder(inputs, mask)
    torch.compiler.reset()
    found = torch.compile(model, backend="eager")(inputs, mask)
    assert torch.equal(found, model(inputs, mask))
    found.sum().backward()


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (0, 3)])
def test_a_batch_without_tokens_gives_zeros_and_no_gradient(kind, shape):
    encoder = make_encoder(kind)
    mask = torch.zeros(shape, dtype=torch.bool)
    output = encoder(torch.full((*shape, 5), float("nan")), mask)
    assert output.shape == (*shape, encoder.get_output_dim()) and bool((output == 0).all())
    output.sum().backward()
    assert all(not parameter.grad.any() for parameter in encoder.parameters())
    with torch.no_grad():
        assert encoder(torch.zeros(*shape, 5), mask).shape == output.shape


def test_the_output_has_the_type_of_the_inputs(kind):
    encoder = make_encoder(kind)
    inputs, mask = make_batch([3, 4, 40, 0])
    expected = encoder(inputs, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = encoder(inputs, mask)
    assert output.dtype == torch.float and not torch.equal(output, expected)
    # Bfloat16 rounds by up to 0.4 %, here in every layer and step; cell states are float32.
    assert relative_error(output, expected) < 0.02
    for dtype in (torch.bfloat16, torch.double):
        assert encoder(inputs.to(dtype), mask).dtype == dtype
    output = encoder.bfloat16()(inputs, mask)
    torch.testing.assert_close(output, expected, rtol=0.1, atol=0.05)


@pytest.mark.parametrize(
    "name, cls, output_dim",
    [("elmo-bilstm", BiLstm, 12), ("elmo-bigru", BiGru, 12), ("elmo-highway-lstm", HighwayLstm, 6)],
)
def test_is_built_from_its_name_and_tells_its_widths(name, cls, output_dim):
    encoder = Seq2SeqEncoder.from_params(Params({"type": name, "input_size": 5, "hidden_size": 6}))
    assert type(encoder) is cls
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (5, output_dim)
    assert encoder.is_bidirectional() == (cls is not HighwayLstm)
    if cls is HighwayLstm:
        assert len(encoder.layers) == 8 and encoder.recurrent_dropout == 0.1


def test_wrong_settings_and_widths_are_named(kind):
    with pytest.raises(ConfigurationError, match="Expected `num_layers` of at least 1, found 0"):
        kind(5, 6, num_layers=0)
    with pytest.raises(ConfigurationError, match="inputs 5 wide but received 4. Set `input_size`"):
        make_encoder(kind)(torch.zeros(1, 2, 4), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ConfigurationError, match="`recurrent_dropout` .* found 1.0"):
        HighwayLstm(5, 6, recurrent_dropout=1.0)


@pytest.mark.parametrize(
    "kind, biases",
    [
        (BiLstm, [0.0] * 6 + [1.0] * 6 + [0.0] * 12),
        (BiGru, [0.0] * 24),
        (HighwayLstm, [0.0] * 6 + [1.0] * 6 + [0.0] * 18),
    ],
)
def test_begins_with_orthogonal_states_and_open_forget_gates(kind, biases):
    torch.manual_seed(1)
    encoder = kind(6, 6, 2)
    is_highway = kind is HighwayLstm
    layers = encoder.layers if is_highway else [*encoder.forward_layers, *encoder.backward_layers]
    for layer in layers:
        blocks = layer.recurrent.weight.split(6) + layer.input.weight.split(6) * is_highway
        for block in blocks:
            torch.testing.assert_close(block @ block.t(), torch.eye(6), rtol=1e-5, atol=1e-5)
        if not is_highway:
            bound = (6 / (layer.input.in_features + 6)) ** 0.5
            assert 0.9 * bound < layer.input.weight.abs().max().item() <= bound
        assert layer.bias.tolist() == biases


@pytest.mark.parametrize("name", ["elmo-bilstm", "elmo-bigru"])
def test_an_initializer_can_draw_pytorch_s_uniform_weights(name):
    bound = 1 / 400**0.5
    uniform = {"regexes": [[".*", {"type": "uniform", "a": -bound, "b": bound}]]}
    params = {"type": name, "input_size": 5, "hidden_size": 400, "initializer": uniform}
    encoder = Seq2SeqEncoder.from_params(Params(params))
    for parameter in encoder.parameters():
        torch.testing.assert_close(parameter.std().item(), bound / 3**0.5, rtol=0.1, atol=0)
        torch.testing.assert_close(parameter.abs().max().item(), bound, rtol=0.1, atol=0)


def step_by_step(encoder: HighwayLstm, sentence: torch.Tensor, masks: torch.Tensor):
    """One sentence through equations 1 to 8 of the paper, token by token."""
    for number, (layer, dropout_mask) in enumerate(zip(encoder.layers, masks)):
        input_weight, recurrent_weight, bias = (
            parameter.split(6)
            for parameter in (layer.input.weight, layer.recurrent.weight, layer.bias)
        )
        hidden = cell_state = torch.zeros(6, dtype=sentence.dtype)
        outputs = []
        for token in sentence.flip(0) if number % 2 else sentence:
            i, f, g, o, r = (
                w @ token + u @ hidden + b for w, u, b in zip(input_weight, recurrent_weight, bias)
            )
            cell_state = i.sigmoid() * g.tanh() + f.sigmoid() * cell_state
            r = r.sigmoid()
            hidden = r * o.sigmoid() * cell_state.tanh() + (1 - r) * (input_weight[5] @ token)
            hidden = hidden * dropout_mask
            outputs.append(hidden)
        sentence = torch.stack(outputs[::-1] if number % 2 else outputs)
    return sentence


def test_dropout_is_one_mask_per_sentence_and_layer_on_recurrence_and_output(monkeypatch):
    drawn = []
    dropout = torch.nn.functional.dropout

    def recording_dropout(ones: torch.Tensor, p: float) -> torch.Tensor:
        assert p == 0.4 and bool((ones == 1).all())
        drawn.append(dropout(ones, p))
        return drawn[-1]

    encoder = make_encoder(HighwayLstm, 3)
    inputs, mask = make_batch([4, 6, 1])
    without = encoder(inputs, mask)
    monkeypatch.setattr(torch.nn.functional, "dropout", recording_dropout)
    encoder.recurrent_dropout = 0.4
    output = encoder(inputs, mask)
    assert len(drawn) == 3
    assert not torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0][0], drawn[0][1])
    for row, sentence in ((0, 1), (1, 0), (2, 2)):
        length = int(mask[sentence].sum())
        masks = torch.stack([layer_mask[row] for layer_mask in drawn])
        expected = step_by_step(encoder, inputs[sentence, :length], masks)
        torch.testing.assert_close(output[sentence, :length], expected, rtol=1e-5, atol=1e-6)
    assert torch.equal(encoder.eval()(inputs, mask), without)
