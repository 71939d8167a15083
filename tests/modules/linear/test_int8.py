"""`Int8Linear`: its products against plain arithmetic, its state, and that it cannot be trained."""

import copy
import pickle

import numpy
import pytest
import torch
from torch.nn.functional import linear

from elmo_plugin.modules.linear import int8
from elmo_plugin.modules.linear.int8 import Int8Linear
from elmo_plugin.modules.linear.packed import PackedLinear


@pytest.fixture(params=[True, False], ids=["integers", "converted"])
def processor(request, monkeypatch):
    """A processor with AVX-512 VNNI, if this is one, and one without."""
    if not request.param:
        monkeypatch.setattr(int8, "has_fast_int8_products", lambda: False)
    return request.param and int8.has_fast_int8_products()


@pytest.fixture
def exact():
    """A trained layer."""
    torch.manual_seed(0)
    return PackedLinear(40, 30).requires_grad_(False)


@pytest.fixture
def layer(processor, exact):
    """The same, rounded."""
    layer = Int8Linear.from_linear(exact)
    assert layer.is_packed == processor
    return layer


def test_each_row_is_rounded_by_its_largest_value(processor):
    exact = PackedLinear(3, 3, bias=False)
    exact.weight.data = torch.tensor([[127.0, -12.4, 0.6], [0.0, -0.5, 0.25], [0.0, 0.0, 0.0]])
    layer = Int8Linear.from_linear(exact)
    assert layer.integers.tolist() == [[127, -12, 1], [0, -127, 64], [0, 0, 0]]
    assert layer.integers.dtype == torch.int8
    expected = [[127, -12, 1], [0, -0.5, 0.5 * 64 / 127], [0, 0, 0]]
    torch.testing.assert_close(layer.dequantize(), torch.tensor(expected))


@pytest.mark.parametrize("num_rows", [0, 1, 2, 7, 64, 65, 200])
@pytest.mark.parametrize("is_given_bias", [True, False])
def test_the_product_is_that_of_the_rounded_weight(exact, layer, num_rows, is_given_bias):
    torch.manual_seed(1)
    inputs = torch.randn(num_rows, 40) * torch.logspace(-6, 6, num_rows).unsqueeze(1)
    bias = torch.randn(30) if is_given_bias else None
    before = inputs.clone()
    found = layer(inputs, bias).numpy()
    plain = inputs.numpy().astype("float64") @ layer.dequantize().numpy().astype("float64").T
    size = numpy.abs(plain).max(axis=1, initial=1e-30, keepdims=True)
    expected = plain + (layer.bias.detach() if bias is None else bias).numpy()
    assert found.shape == (num_rows, 30) and torch.equal(inputs, before)
    assert (numpy.abs(found - expected) <= 1e-4 * size + 1e-6).all()
    # The inputs of a single row are so small that the bias hides the difference.
    if num_rows > 1:
        error = torch.from_numpy(found) - exact(inputs, bias)
        assert 0 < error.norm() < 0.01 * linear(inputs, exact.weight).norm()


@pytest.mark.parametrize("num_rows", [2, 63, 64, 65, 130])
def test_a_row_does_not_depend_on_the_others(layer, num_rows):
    inputs = torch.randn(num_rows, 40)
    alone = layer(inputs[:1])
    inputs[1:] *= 1000
    torch.testing.assert_close(layer(inputs)[:1], alone, rtol=1e-6, atol=1e-6)
    for value in (float("nan"), float("inf")):
        inputs = torch.ones(3, 40)
        inputs[1, 5] = value
        inputs[2] = 0.0
        found = layer(inputs)
        assert found[0].isfinite().all() and torch.equal(found[2], layer.bias)
        # Nothing but 0 hides it, where it is not multiplied.
        assert not found[1].isfinite()[layer.integers[:, 5] != 0].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_result_has_the_type_of_the_inputs(layer, dtype):
    # Rows and columns need not lie side by side.
    inputs = torch.randn(40, 5, dtype=dtype).t()
    found = layer(inputs, torch.ones(30))
    assert found.dtype == dtype
    expected = linear(inputs.double(), layer.dequantize().double()) + 1
    torch.testing.assert_close(found.double(), expected, rtol=0.01, atol=0.02)


def test_the_weight_is_stored_once_and_read_where_that_is_needed(layer):
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    assert [name for name, _ in layer.named_buffers()] == ["scale"]
    weight = layer.weight
    assert (weight.shape, weight.dtype) == ((30, 40), torch.float32)
    assert (weight.device.type == "meta") == layer.is_packed
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(layer.weight, layer.dequantize())


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


def test_the_state_is_integers_and_their_scale_and_goes_into_other_layers(exact, layer):
    state = layer.state_dict(prefix="a.")
    assert {name: value.dtype for name, value in state.items()} == {
        "a.weight": torch.int8,
        "a.scale": torch.float32,
        "a.bias": torch.float32,
    }
    assert state["a.weight"].layout == torch.strided
    for kind in (layer, exact):
        other = Int8Linear.from_linear(PackedLinear(40, 30).requires_grad_(False))
        before, state = other.scale, copy.deepcopy(kind.state_dict())
        other.load_state_dict(state)
        # A change of weights can be told by their addresses.
        assert other.scale.data_ptr() != before.data_ptr()
        # What was loaded is copied.
        for value in state.values():
            value.zero_()
        inputs = torch.randn(5, 40)
        assert torch.equal(other(inputs), layer(inputs))
    wide = PackedLinear(40, 30)
    wide.load_state_dict(layer.state_dict())
    assert torch.equal(wide.weight, layer.dequantize())
    assert torch.equal(wide.bias, exact.bias)


@pytest.mark.parametrize("missing", ["weight", "scale", "bias"])
def test_what_is_missing_or_unexpected_in_a_state_is_named(layer, missing):
    state = layer.state_dict()
    del state[missing]
    with pytest.raises(RuntimeError, match=f'Missing key.*"{missing}"'):
        layer.load_state_dict(state)
    with pytest.raises(RuntimeError, match='Unexpected key.*"zero_point"'):
        layer.load_state_dict({**layer.state_dict(), "zero_point": torch.zeros(30)})


def test_a_state_of_another_shape_is_refused(layer):
    state = Int8Linear.from_linear(PackedLinear(41, 30)).state_dict()
    with pytest.raises(RuntimeError, match=r"weight: expected shape \(30, 40\), found \(30, 41\)"):
        layer.load_state_dict(state)


def test_other_types_and_places_are_followed(layer):
    inputs = torch.randn(5, 40)
    expected = layer(inputs)
    layer.to(torch.bfloat16)
    assert layer.scale.dtype == torch.float32
    found = layer(inputs.bfloat16())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.02, atol=0.02)
    layer.to("meta")
    assert layer.integers.device.type == layer.weight.device.type == "meta"
    assert layer(torch.empty(3, 40, device="meta")).shape == (3, 30)
