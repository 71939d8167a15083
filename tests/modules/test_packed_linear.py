"""`PackedLinear`, `PackedMatrix` and padded products against plain ones."""

import copy
import pickle
import weakref

import numpy
import pytest
import torch
from torch.nn.functional import linear

from elmo_plugin.modules import packed_linear as packed
from elmo_plugin.modules.packed_linear import (
    HAS_ONEDNN,
    ONEDNN_TAKES_BFLOAT16,
    PackedLinear,
    PackedMatrix,
    column_sums,
    padded_rows,
    transposed_product,
    with_rows,
)
from tests.bilm.oracle import relative_error

# So large that the packed copy is in oneDNN's own layout.
NUM_IN, NUM_OUT = 440, 500
# Small, small for a single row, and neither.
SHAPES = [(30, 40), (500, 440), (500, 1100)]
ERRORS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.02}
needs_onednn = pytest.mark.skipif(not HAS_ONEDNN, reason="this torch cannot pack")


@pytest.fixture(params=SHAPES, ids=str)
def weight(request):
    return torch.randn(request.param, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", ERRORS)
@pytest.mark.parametrize("num_rows", [0, 1, 16, 64, 65, 200])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_product_of_a_packed_matrix_is_that_of_linear(weight, dtype, num_rows, has_bias):
    torch.manual_seed(1)
    weight, most = weight.to(dtype), ERRORS[dtype]
    out_features, in_features = weight.shape
    inputs = torch.randn(num_rows, in_features).to(dtype)
    bias = torch.randn(out_features).to(dtype) if has_bias else None
    expected = linear(inputs.double(), weight.double(), None if bias is None else bias.double())
    before = [value.clone() for value in (inputs, bias) if value is not None]
    found = PackedMatrix(torch.nn.Parameter(weight)).product(inputs, bias)
    assert found.dtype == dtype and found.shape == (num_rows, out_features)
    assert not found.requires_grad
    torch.testing.assert_close(found.double(), expected, rtol=most, atol=most * in_features / 8)
    # What is added belongs to the caller.
    after = [value for value in (inputs, bias) if value is not None]
    assert all(torch.equal(*pair) for pair in zip(before, after))


def test_it_knows_what_gains_by_packing():
    cpu = torch.device("cpu")
    assert PackedMatrix.can_pack(cpu, torch.float32) == HAS_ONEDNN
    packed = [PackedMatrix(torch.zeros(shape))._packed is not None for shape in SHAPES]
    assert packed == [False, HAS_ONEDNN, HAS_ONEDNN]
    assert PackedMatrix.can_pack(cpu, torch.bfloat16) == ONEDNN_TAKES_BFLOAT16
    assert not PackedMatrix.can_pack(cpu, torch.float64)
    assert not PackedMatrix.can_pack(torch.device("cuda"), torch.float32)


def assert_is_linear(layer, inputs):
    expected = linear(inputs, layer.weight, layer.bias)
    torch.testing.assert_close(layer(inputs), expected, rtol=1e-5, atol=1e-5)


def packed_copy(layer):
    """The copy that the layer caches, or None."""
    cached = layer._copies.get((PackedMatrix, ()))
    return None if cached is None else cached[1]


@pytest.fixture
def layer():
    """A layer whose weight was used, and packed where that is possible."""
    torch.manual_seed(0)
    layer = PackedLinear(NUM_IN, NUM_OUT).eval()
    with torch.no_grad():
        layer(torch.randn(4, NUM_IN))
    assert (packed_copy(layer) is not None) == HAS_ONEDNN
    assert not HAS_ONEDNN or packed_copy(layer)._packed is not None
    return layer


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_the_product_is_that_of_linear(has_bias, gradients):
    torch.manual_seed(1)
    layer = PackedLinear(NUM_IN, NUM_OUT, bias=has_bias).eval()
    with torch.set_grad_enabled(gradients):
        assert_is_linear(layer, torch.randn(7, NUM_IN))
        # Rows and columns that do not lie side by side in memory.
        assert_is_linear(layer, torch.randn(7, 2 * NUM_IN)[:, ::2])
        assert_is_linear(layer, torch.randn(NUM_IN, 7).t())
    assert (packed_copy(layer) is None) == (gradients or not HAS_ONEDNN)


def test_a_bias_alone_may_be_trained(layer):
    layer.weight.requires_grad_(False)
    layer(torch.randn(7, NUM_IN)).sum().backward()
    torch.testing.assert_close(layer.bias.grad, torch.full((NUM_OUT,), 7.0))


def pickled(layer):
    return pickle.loads(pickle.dumps(layer))


def new_weight():
    return torch.randn(NUM_OUT, NUM_IN) / NUM_IN


def optimise(layer, evaluates=False, **settings):
    with torch.enable_grad():
        layer(torch.randn(3, NUM_IN)).square().sum().backward()
    if evaluates:
        layer(torch.randn(3, NUM_IN))
    torch.optim.Adam(layer.parameters(), lr=0.1, **settings).step()


def write_an_element(layer):
    layer.weight.data[1, 2] += 1.0
    layer.eval()


CHANGES = {
    # As moving averages of weights are kept, in a copy that stays in evaluation mode.
    "in place": lambda layer: layer.weight.mul_(2),
    "loaded": lambda layer: layer.load_state_dict(PackedLinear(NUM_IN, NUM_OUT).state_dict()),
    "replaced": lambda layer: setattr(layer, "weight", torch.nn.Parameter(new_weight())),
    "rounded": lambda layer: layer.to(torch.bfloat16).to(torch.float32),
    "optimised": optimise,
    "optimised by a fused kernel": lambda layer: optimise(layer, fused=True),
    "optimised after an evaluation": lambda layer: optimise(layer, evaluates=True),
    # As AllenNLP's moving averages do it.
    "written through data": lambda layer: layer.weight.data.copy_(new_weight()),
    "an element written through data": write_an_element,
    "written while in training mode": lambda layer: layer.train().weight.data.copy_(new_weight()),
    # As `torch.nn.utils.vector_to_parameters` does.
    "data replaced": lambda layer: setattr(layer.weight, "data", new_weight()),
}


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_weight_is_packed_again(layer, change, frozen):
    inputs = torch.randn(5, NUM_IN)
    with torch.no_grad():
        before = layer(inputs)
        change(layer)
        layer.requires_grad_(not frozen)
        for _ in range(2):
            assert_is_linear(layer, inputs)
            assert not torch.equal(layer(inputs), before)


def test_memory_of_a_packed_weight_is_free_only_when_another_is_packed(layer):
    """A new weight at its address would be taken for it."""
    memory = numpy.zeros((NUM_OUT, NUM_IN), dtype="float32")
    packed = weakref.ref(memory)
    layer.weight.data = torch.from_numpy(memory)
    del memory
    layer.cached(torch.clone)
    layer.weight.data = torch.randn(NUM_OUT, NUM_IN)
    assert packed() is not None
    assert torch.equal(layer.cached(torch.clone), layer.weight)
    assert packed() is None


@needs_onednn
def test_a_frozen_layer_stays_packed_in_a_model_in_training(layer):
    layer.requires_grad_(False)
    torch.nn.Sequential(layer).train()
    layer(torch.randn(5, NUM_IN))
    packed = packed_copy(layer)
    layer(torch.randn(5, NUM_IN))
    assert packed is not None and packed_copy(layer) is packed


@needs_onednn
def test_an_unchanged_weight_is_packed_once_and_one_that_moves_drops_its_copy(layer):
    packed = packed_copy(layer)
    with torch.no_grad():
        layer(torch.randn(9, NUM_IN))
    assert packed_copy(layer) is packed
    assert layer.state_dict().keys() == {"weight", "bias"}
    # The rounded weight may come to stand at the address of the exact one.
    layer.to(torch.bfloat16)
    assert packed_copy(layer) is None


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, pickled])
def test_a_copy_packs_for_itself(layer, duplicate):
    twin = duplicate(layer)
    inputs = torch.randn(5, NUM_IN)
    with torch.no_grad():
        assert torch.equal(twin(inputs), layer(inputs))
        # A shallow copy shares the weight.
        twin.weight.mul_(3)
        assert_is_linear(twin, inputs)
        assert_is_linear(layer, inputs)


def test_autocast_decides_the_type(layer):
    inputs = torch.randn(5, NUM_IN)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(inputs).dtype == torch.bfloat16
        assert torch.equal(layer(inputs), linear(inputs, layer.weight, layer.bias))


def test_a_weight_made_and_changed_in_inference_mode_is_packed_again():
    with torch.inference_mode():
        layer = PackedLinear(8, 16).eval()
        inputs = torch.randn(4, 8)
        layer(inputs)
        layer.weight.mul_(2)
        layer.eval()
        expected = inputs @ layer.weight.t() + layer.bias
        torch.testing.assert_close(layer(inputs), expected)


@pytest.fixture
def of_bfloat16(monkeypatch):
    """The path of a processor with bfloat16."""
    monkeypatch.setattr(packed, "ONEDNN_TAKES_BFLOAT16", True)


MOST = {**ERRORS, torch.bfloat16: 0.01}


def test_there_are_few_different_numbers_of_rows():
    numbers = [padded_rows(number) for number in range(1, 8193)]
    assert all(number <= padded for number, padded in enumerate(numbers, start=1))
    assert all(padded - number < max(4, number / 16) for number, padded in enumerate(numbers, 1))
    assert len(set(numbers)) == 128 // 4 + 6 * 16
    assert all(padded_rows(number) == number for number in numbers)
    assert padded_rows(0) == 0


@pytest.mark.parametrize("dtype", ERRORS)
@pytest.mark.parametrize("num_rows", [1, 5, 131])
def test_padding_changes_neither_values_nor_gradients(of_bfloat16, dtype, num_rows):
    torch.manual_seed(1)
    layer, inputs = PackedLinear(6, 7).to(dtype), torch.randn(num_rows, 6).to(dtype)
    tensors = [inputs.requires_grad_(), layer.weight, layer.bias]
    references = [tensor.detach().double().requires_grad_() for tensor in tensors]
    found, expected = layer(inputs), linear(*references)
    assert found.dtype == dtype and relative_error(found, expected) < MOST[dtype]
    found.square().sum().backward()
    expected.square().sum().backward()
    for tensor, reference in zip(tensors, references):
        assert relative_error(tensor.grad, reference.grad) < 2 * MOST[dtype]


@pytest.mark.parametrize("dtype", ERRORS)
@pytest.mark.parametrize("widths", [(3, 5), (5, 3)])
@pytest.mark.parametrize("extra_rows", [0, 9])
def test_a_transposed_product_ignores_rows_of_zeros(of_bfloat16, dtype, widths, extra_rows):
    torch.manual_seed(2)
    left, right = (torch.randn(131, width).to(dtype) for width in widths)
    expected = left.double().t() @ right.double()
    found = transposed_product(with_rows(left, 131 + extra_rows), right)
    assert found.shape == expected.shape
    assert relative_error(found, expected) < MOST[dtype]
    assert relative_error(transposed_product(left, with_rows(right, 140)), expected) < MOST[dtype]


@pytest.mark.parametrize("dtype", ERRORS)
def test_sums_are_not_rounded_at_each_step(dtype):
    # In steps of bfloat16 the sum of ones stays at 256.
    assert column_sums(torch.ones(4096, 3, dtype=dtype)).tolist() == [4096.0] * 3
