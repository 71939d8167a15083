"""`Int8Linear`: the layer it was made of, its state, and that it cannot be trained."""

import copy
import pickle

import pytest
import torch
from torch.nn.functional import linear

from elmo_plugin.modules.linear import int8
from elmo_plugin.modules.linear.int8 import Int8Linear
from elmo_plugin.modules.linear.packed import PackedLinear


@pytest.fixture
def exact():
    """A trained layer."""
    torch.manual_seed(0)
    return PackedLinear(40, 30).requires_grad_(False)


@pytest.fixture
def layer(exact):
    """The same, rounded."""
    return Int8Linear.from_linear(exact)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("is_given_bias", [True, False])
def test_the_product_is_that_of_the_layer_it_was_made_of(has_bias, is_given_bias):
    torch.manual_seed(1)
    exact = PackedLinear(40, 30, bias=has_bias).requires_grad_(False)
    layer = Int8Linear.from_linear(exact)
    inputs = torch.randn(7, 40)
    bias = torch.randn(30) if is_given_bias else None
    error = layer(inputs, bias) - exact(inputs, bias)
    assert 0 < error.norm() < 0.01 * linear(inputs, exact.weight).norm()


def test_no_weight_is_changed_by_more_than_half_a_step(exact, layer):
    step = exact.weight.abs().amax(dim=1, keepdim=True) / 127
    assert ((layer.matrix.dequantize() - exact.weight).abs() <= step * 0.5001).all()


def test_the_weight_is_stored_once(layer):
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    assert [name for name, _ in layer.named_buffers()] == ["scale"]
    weight = layer.weight
    assert (weight.shape, weight.dtype) == ((30, 40), torch.float32)
    if layer.matrix.is_packed:
        assert weight.device.type == "meta"


def test_weight_is_the_dequantised_matrix_where_it_is_read(layer, monkeypatch):
    expected = layer.matrix.dequantize()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer.weight, expected)
    monkeypatch.setattr(int8, "has_fast_int8_products", lambda: False)
    assert torch.equal(copy.deepcopy(layer).weight, expected)


@pytest.mark.parametrize("requires_grad", ["inputs", "bias"])
def test_gradients_are_refused(layer, requires_grad):
    inputs = torch.randn(5, 40)
    (inputs if requires_grad == "inputs" else layer).requires_grad_()
    with pytest.raises(RuntimeError, match="can be trained, found int8. Load .* `dtype` float32"):
        layer(inputs)
    with torch.no_grad():
        assert layer(inputs).shape == (5, 30)
    with pytest.raises(RuntimeError, match="found int8"):
        layer.drop_packed()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, copy.copy, lambda layer: pickle.loads(pickle.dumps(layer))]
)
def test_a_copy_gives_the_same(layer, duplicate):
    inputs = torch.randn(5, 40)
    assert torch.equal(duplicate(layer)(inputs), layer(inputs))


def test_the_state_is_whole_numbers_and_their_scale(layer):
    state = layer.state_dict(prefix="a.")
    assert {name: value.dtype for name, value in state.items()} == {
        "a.weight": torch.int8,
        "a.scale": torch.float32,
        "a.bias": torch.float32,
    }
    assert state["a.weight"].layout == torch.strided


def test_a_state_goes_into_another_layer(layer):
    other = Int8Linear.from_linear(PackedLinear(40, 30).requires_grad_(False))
    before = other.scale
    other.load_state_dict(layer.state_dict())
    inputs = torch.randn(5, 40)
    assert torch.equal(other(inputs), layer(inputs))
    # A change of weights can be told by their addresses.
    assert other.scale.data_ptr() != before.data_ptr()


def test_a_loaded_state_is_copied(layer):
    state = copy.deepcopy(layer).state_dict()
    layer.load_state_dict(state)
    inputs = torch.randn(5, 40)
    before = layer(inputs)
    for value in state.values():
        value.zero_()
    assert torch.equal(layer(inputs), before)


def test_real_numbers_are_rounded_when_loaded_and_widened_on_the_way_back(exact, layer):
    other = Int8Linear.from_linear(PackedLinear(40, 30).requires_grad_(False))
    other.load_state_dict(exact.state_dict())
    assert torch.equal(other.matrix.weight, layer.matrix.weight)
    wide = PackedLinear(40, 30)
    wide.load_state_dict(layer.state_dict())
    assert torch.equal(wide.weight, layer.matrix.dequantize())
    assert torch.equal(wide.bias, exact.bias)


@pytest.mark.parametrize("missing", ["weight", "scale", "bias"])
def test_what_is_missing_of_a_state_is_named(layer, missing):
    state = layer.state_dict()
    del state[missing]
    with pytest.raises(RuntimeError, match=f'Missing key.*"{missing}"'):
        layer.load_state_dict(state)


def test_what_is_unexpected_in_a_state_is_named(layer):
    with pytest.raises(RuntimeError, match='Unexpected key.*"zero_point"'):
        layer.load_state_dict({**layer.state_dict(), "zero_point": torch.zeros(30)})


def test_a_state_of_another_shape_is_refused(layer):
    state = Int8Linear.from_linear(PackedLinear(41, 30)).state_dict()
    with pytest.raises(RuntimeError, match=r"weight: expected shape \(30, 40\), found \(30, 41\)"):
        layer.load_state_dict(state)


def test_other_types_and_places_are_followed(layer):
    inputs = torch.randn(5, 40)
    expected = layer(inputs)
    matrix = layer.matrix
    layer.to(torch.bfloat16)
    assert layer.matrix is matrix and layer.scale is matrix.scale
    found = layer(inputs.bfloat16())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.02, atol=0.02)
    layer.to("meta")
    assert layer.matrix.weight.device.type == layer.weight.device.type == "meta"
