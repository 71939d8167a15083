"""`Int8Linear`: its products against plain arithmetic, its state, and that it cannot be trained."""

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
    layer = Int8Linear(exact)
    assert layer.is_fast == processor
    return layer


def test_each_row_is_rounded_by_its_largest_value(processor):
    exact = PackedLinear(3, 3, bias=False)
    exact.weight.data = torch.tensor([[127.0, -12.4, 0.6], [0.0, -0.5, 0.25], [0.0, 0.0, 0.0]])
    layer = Int8Linear(exact)
    assert layer.weight.tolist() == [[127, -12, 1], [0, -127, 64], [0, 0, 0]]
    assert layer.weight.dtype == torch.int8
    expected = [[127, -12, 1], [0, -0.5, 0.5 * 64 / 127], [0, 0, 0]]
    torch.testing.assert_close(layer.dequantize(), torch.tensor(expected))


@pytest.mark.parametrize("num_rows", [0, 1, 7, 64, 200])
def test_the_product_is_that_of_the_rounded_weight(exact, layer, num_rows):
    torch.manual_seed(1)
    inputs = torch.randn(num_rows, 40) * torch.logspace(-6, 6, num_rows).unsqueeze(1)
    before = inputs.clone()
    found = layer(inputs).numpy()
    plain = inputs.numpy().astype("float64") @ layer.dequantize().numpy().astype("float64").T
    size = numpy.abs(plain).max(axis=1, initial=1e-30, keepdims=True)
    assert found.shape == (num_rows, 30) and torch.equal(inputs, before)
    assert (numpy.abs(found - plain - layer.bias.numpy()) <= 1e-4 * size + 1e-6).all()
    # The inputs of a single row are so small that the bias hides the difference.
    if num_rows > 1:
        error = torch.from_numpy(found) - exact(inputs)
        assert 0 < error.norm() < 0.01 * linear(inputs, exact.weight).norm()


@pytest.mark.parametrize("num_rows", [2, 65])
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
        assert not found[1].isfinite()[layer.weight[:, 5] != 0].any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_result_has_the_type_of_the_inputs(layer, dtype):
    # Rows and columns need not lie side by side.
    inputs = torch.randn(40, 5, dtype=dtype).t()
    found = layer(inputs)
    assert found.dtype == dtype
    expected = linear(inputs.double(), layer.dequantize().double(), layer.bias.double())
    torch.testing.assert_close(found.double(), expected, rtol=0.01, atol=0.02)


@pytest.mark.parametrize("requires_grad", ["inputs", "bias"])
def test_gradients_are_refused(layer, requires_grad):
    inputs = torch.randn(5, 40)
    (inputs if requires_grad == "inputs" else layer).requires_grad_()
    with pytest.raises(RuntimeError, match="can be trained, found int8. Load .* `dtype` float32"):
        layer(inputs)
    with torch.no_grad():
        assert layer(inputs).shape == (5, 30)


def test_the_state_is_integers_and_their_scale_and_goes_into_other_layers(exact, layer):
    inputs = torch.randn(5, 40)
    types = {name: value.dtype for name, value in layer.state_dict().items()}
    assert types == {"weight": torch.int8, "scale": torch.float32, "bias": torch.float32}
    assert [name for name, _ in layer.named_parameters()] == ["bias"]
    for kind in (layer, exact):
        other = Int8Linear(PackedLinear(40, 30).requires_grad_(False))
        # Packs the weight that is to be replaced.
        other(inputs)
        other.load_state_dict(kind.state_dict())
        assert torch.equal(other(inputs), layer(inputs))
    wide = PackedLinear(40, 30)
    wide.load_state_dict(layer.state_dict())
    assert torch.equal(wide.weight, layer.dequantize())
    assert torch.equal(wide.bias, exact.bias)


def test_a_state_that_does_not_fit_is_refused(layer):
    without_scale = layer.state_dict()
    del without_scale["scale"]
    with pytest.raises(RuntimeError, match='Missing key.*"scale"'):
        layer.load_state_dict(without_scale)
    with pytest.raises(RuntimeError, match=r"size mismatch for weight: .*\[30, 41\]"):
        layer.load_state_dict(Int8Linear(PackedLinear(41, 30)).state_dict())


def test_other_types_and_places_are_followed(layer):
    inputs = torch.randn(5, 40)
    expected = layer(inputs)
    layer.to(torch.bfloat16)
    assert layer.scale.dtype == torch.float32
    found = layer(inputs.bfloat16())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.02, atol=0.02)
    layer.to("meta")
    assert layer(torch.empty(3, 40, device="meta")).shape == (3, 30)
