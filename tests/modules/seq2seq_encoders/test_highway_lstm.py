from typing import List

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.modules.seq2seq_encoders import PytorchSeq2SeqWrapper, Seq2SeqEncoder
from allennlp.modules.stacked_alternating_lstm import StackedAlternatingLstm

from elmo_plugin.modules.seq2seq_encoders.highway_lstm import HighwayLstm


def make_encoder(num_layers: int = 4, recurrent_dropout: float = 0.0) -> HighwayLstm:
    torch.manual_seed(1)
    return HighwayLstm(5, 6, num_layers, recurrent_dropout)


def make_batch(lengths: List[int], dtype: torch.dtype = torch.float, num_tokens: int = 0):
    """Padding holds NaN, so that any use of it shows."""
    torch.manual_seed(2)
    mask = torch.arange(max(num_tokens, *lengths)) < torch.tensor(lengths).unsqueeze(1)
    inputs = torch.randn(*mask.shape, 5, dtype=dtype)
    return inputs.masked_fill(~mask.unsqueeze(2), float("nan")), mask


def parameters(encoder: HighwayLstm) -> List[List[torch.Tensor]]:
    """Per layer; AllenNLP has the same gate order."""
    return [[layer.input.weight, layer.recurrent.weight, layer.bias] for layer in encoder.layers]


def allennlp_twin(encoder: HighwayLstm) -> StackedAlternatingLstm:
    twin = StackedAlternatingLstm(5, 6, len(encoder.layers), use_input_projection_bias=False)
    for layer, ours in zip(twin.lstm_layers, parameters(encoder)):
        for theirs, weight in zip(allennlp_parameters(layer), ours):
            theirs.data = weight.data.clone()
    return twin


def allennlp_parameters(layer: torch.nn.Module) -> List[torch.Tensor]:
    cell = layer.cell
    return [cell.input_linearity.weight, cell.state_linearity.weight, cell.state_linearity.bias]


def step_by_step(encoder: HighwayLstm, sentence: torch.Tensor, masks: torch.Tensor):
    """One sentence through equations 1 to 8 of the paper, token by token."""
    for layer, dropout_mask in enumerate(masks):
        input_weight, recurrent_weight, bias = (
            parameter.split(6) for parameter in parameters(encoder)[layer]
        )
        hidden = cell_state = torch.zeros(6, dtype=sentence.dtype)
        outputs = []
        for token in sentence.flip(0) if layer % 2 else sentence:
            i, f, g, o, r = (
                w @ token + u @ hidden + b for w, u, b in zip(input_weight, recurrent_weight, bias)
            )
            cell_state = i.sigmoid() * g.tanh() + f.sigmoid() * cell_state
            r = r.sigmoid()
            hidden = r * o.sigmoid() * cell_state.tanh() + (1 - r) * (input_weight[5] @ token)
            hidden = hidden * dropout_mask
            outputs.append(hidden)
        sentence = torch.stack(outputs[::-1] if layer % 2 else outputs)
    return sentence


@pytest.mark.parametrize("num_layers", [1, 2, 5])
@pytest.mark.parametrize(
    "dtype, output_tolerance, gradient_tolerance",
    [(torch.float, 1e-5, 1e-4), (torch.double, 1e-12, 1e-11)],
)
def test_equals_allennlp_in_outputs_and_gradients(
    num_layers, dtype, output_tolerance, gradient_tolerance
):
    encoder = make_encoder(num_layers).to(dtype)
    twin = allennlp_twin(encoder).to(dtype)
    wrapped = PytorchSeq2SeqWrapper(twin)
    inputs, mask = make_batch([3, 7, 1, 6, 7], dtype)
    ours = inputs.nan_to_num().requires_grad_()
    theirs = inputs.nan_to_num().requires_grad_()
    output, expected = encoder(ours, mask), wrapped(theirs, mask)
    torch.testing.assert_close(output, expected, rtol=output_tolerance, atol=output_tolerance)

    weights = torch.randn_like(output)
    (output * weights).sum().backward()
    (expected * weights).sum().backward()

    def assert_same_gradient(found: torch.Tensor, wanted: torch.Tensor) -> None:
        assert (found - wanted).norm() <= gradient_tolerance * wanted.norm()

    assert_same_gradient(ours.grad, theirs.grad)
    for layer, ours in zip(twin.lstm_layers, parameters(encoder)):
        for found, wanted in zip(ours, allennlp_parameters(layer)):
            assert_same_gradient(found.grad, wanted.grad)


def test_gradients_equal_finite_differences_with_dropout_and_empty_sentences():
    # Small, since every weight is moved twice; three layers see both directions and a middle.
    encoder = HighwayLstm(2, 2, num_layers=3, recurrent_dropout=0.3).double()
    inputs, mask = make_batch([2, 0, 3], torch.double)

    def encode(inputs: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return encoder(inputs, mask)

    inputs = inputs[:, :, :2].nan_to_num().requires_grad_()
    assert torch.autograd.gradcheck(encode, (inputs, *encoder.parameters()))


def test_dropout_is_one_mask_per_sentence_and_layer_on_recurrence_and_output(monkeypatch):
    drawn = []
    dropout = torch.nn.functional.dropout

    def recording_dropout(ones: torch.Tensor, p: float) -> torch.Tensor:
        assert p == 0.4 and bool((ones == 1).all())
        drawn.append(dropout(ones, p))
        return drawn[-1]

    monkeypatch.setattr(torch.nn.functional, "dropout", recording_dropout)
    encoder = make_encoder(3, recurrent_dropout=0.4)
    inputs, mask = make_batch([4, 6, 1])
    output = encoder(inputs, mask)
    assert len(drawn) == 3
    assert not torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0][0], drawn[0][1])
    for row, sentence in ((0, 1), (1, 0), (2, 2)):
        length = int(mask[sentence].sum())
        masks = torch.stack([layer_mask[row] for layer_mask in drawn])
        expected = step_by_step(encoder, inputs[sentence, :length], masks)
        torch.testing.assert_close(output[sentence, :length], expected, rtol=1e-5, atol=1e-6)


def test_dropout_is_off_in_evaluation():
    inputs, mask = make_batch([4, 6, 1])
    without = make_encoder()(inputs, mask)
    encoder = make_encoder(recurrent_dropout=0.5)
    assert not torch.equal(encoder(inputs, mask), without)
    assert torch.equal(encoder.eval()(inputs, mask), without)


def test_padding_is_zero_and_does_not_change_real_tokens():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 0, 5, 1])
    output = encoder(inputs, mask)
    assert bool((output[~mask] == 0).all()) and bool((output[mask] != 0).all())
    longer = torch.cat([inputs, torch.full((4, 2, 5), float("nan"))], dim=1)
    longer_mask = torch.nn.functional.pad(mask, (0, 2))
    torch.testing.assert_close(encoder(longer, longer_mask)[:, :5], output)


@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_outputs_have_the_type_of_the_inputs(dtype):
    inputs, mask = make_batch([3, 1], dtype)
    assert make_encoder()(inputs, mask).dtype == dtype
    assert make_encoder().double()(inputs, mask).dtype == dtype


def test_batch_order_and_size_do_not_change_a_sentence():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 7, 0, 5, 5])
    output = encoder(inputs, mask)
    order = torch.tensor([4, 2, 0, 1, 3])
    torch.testing.assert_close(encoder(inputs[order], mask[order]), output[order])
    for row in range(5):
        alone = encoder(inputs[row : row + 1], mask[row : row + 1])
        torch.testing.assert_close(alone, output[row : row + 1], rtol=1e-5, atol=1e-6)


def test_backward_layers_start_at_each_sentences_own_last_token():
    encoder = make_encoder(2)
    inputs, mask = make_batch([2, 5])
    changed = inputs.clone()
    changed[0, 1] += 1
    before, after = encoder(inputs, mask), encoder(changed, mask)
    assert not torch.allclose(before[0, 0], after[0, 0])
    single = step_by_step(encoder, inputs[0, :2], torch.ones(2, 6))
    torch.testing.assert_close(before[0, :2], single, rtol=1e-5, atol=1e-6)


def test_a_batch_without_any_token_gives_zeros_and_zero_gradients():
    encoder = make_encoder(recurrent_dropout=0.1)
    inputs, mask = make_batch([0, 0], num_tokens=3)
    output = encoder(inputs, mask)
    assert output.shape == (2, 3, 6) and bool((output == 0).all())
    output.sum().backward()
    assert all(bool((parameter.grad == 0).all()) for parameter in encoder.parameters())


def test_each_block_is_orthogonal_and_forget_gates_begin_open():
    encoder = HighwayLstm(6, 6, num_layers=2)
    for layer in encoder.layers:
        for block in (*layer.input.weight.split(6), *layer.recurrent.weight.split(6)):
            torch.testing.assert_close(block @ block.t(), torch.eye(6), rtol=0, atol=1e-5)
        assert layer.bias.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 18


def test_works_without_gradients_and_when_back_propagated_twice():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 4])
    output = encoder(inputs, mask)
    with torch.no_grad():
        assert torch.equal(encoder(inputs, mask), output)
    with torch.inference_mode():
        assert torch.equal(encoder(inputs, mask), output)
    first = torch.autograd.grad(output.sum(), encoder.layers[0].input.weight, retain_graph=True)
    again = torch.autograd.grad(output.sum(), encoder.layers[0].input.weight)
    assert torch.equal(first[0], again[0])


def test_autocast_stays_close_and_keeps_the_type_of_the_inputs():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 4, 40, 0])
    expected = encoder(inputs, mask)
    weights = torch.randn_like(expected)
    expected_gradients = torch.autograd.grad((expected * weights).sum(), encoder.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = encoder(inputs, mask)
        with torch.no_grad():
            assert torch.equal(encoder(inputs, mask), output)
    found_gradients = torch.autograd.grad((output * weights).sum(), encoder.parameters())

    def relative_error(found, wanted):
        return float((found - wanted).detach().norm() / wanted.detach().norm())

    # Bfloat16 rounds by up to 0.4 %, here in every layer and step; cell states are float32.
    assert output.dtype == torch.float and not torch.equal(output, expected)
    assert relative_error(output, expected) < 0.02
    for found, wanted in zip(found_gradients, expected_gradients):
        assert found.dtype == torch.float and relative_error(found, wanted) < 0.03
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert encoder(inputs.bfloat16(), mask).dtype == torch.bfloat16


def test_half_precision_weights_stay_close():
    encoder = make_encoder()
    inputs, mask = make_batch([3, 4])
    expected = encoder(inputs, mask)
    output = encoder.bfloat16()(inputs.bfloat16(), mask)
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float(), expected, rtol=0.1, atol=0.05)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_what_the_processor_gives():
    encoder = make_encoder().double()
    inputs, mask = make_batch([3, 0, 4], torch.double)
    expected = encoder(inputs, mask)
    expected_gradient = torch.autograd.grad(expected.sum(), encoder.layers[0].recurrent.weight)[0]
    encoder.cuda()
    output = encoder(inputs.cuda(), mask.cuda())
    gradient = torch.autograd.grad(output.sum(), encoder.layers[0].recurrent.weight)[0]
    torch.testing.assert_close(output.cpu(), expected)
    torch.testing.assert_close(gradient.cpu(), expected_gradient)


def test_is_built_from_its_registered_name():
    params = {"type": "elmo-highway-lstm", "input_size": 5, "hidden_size": 6}
    encoder = Seq2SeqEncoder.from_params(Params(params))
    assert isinstance(encoder, HighwayLstm) and len(encoder.layers) == 8
    assert encoder.recurrent_dropout == 0.1
    assert (encoder.get_input_dim(), encoder.get_output_dim()) == (5, 6)
    assert not encoder.is_bidirectional()


def test_errors_name_what_to_change():
    with pytest.raises(ConfigurationError, match="reads inputs 5 wide but received 4"):
        make_encoder()(torch.zeros(1, 2, 4), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ConfigurationError, match="`num_layers` of at least 1, found 0"):
        HighwayLstm(5, 6, num_layers=0)
    with pytest.raises(ConfigurationError, match="`recurrent_dropout` .* found 1.0"):
        HighwayLstm(5, 6, recurrent_dropout=1.0)
