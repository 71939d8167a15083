"""`Int8Matrix` against plain arithmetic."""

import copy
import pickle

import numpy
import pytest
import torch
from torch.nn.functional import linear

from elmo_plugin.modules.linear import int8
from elmo_plugin.modules.linear.int8 import Int8Matrix


@pytest.fixture(params=[True, False], ids=["whole numbers", "widened"])
def processor(request, monkeypatch):
    """A processor with AVX-512 VNNI, if this is one, and one without."""
    if not request.param:
        monkeypatch.setattr(int8, "has_fast_int8_products", lambda: False)
    return request.param and int8.has_fast_int8_products()


@pytest.fixture
def matrix(processor):
    """A matrix of whole numbers that stand for their product with 1 to 5 hundredths."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randint(-127, 128, (30, 40), dtype=torch.int8, generator=generator)
    matrix = Int8Matrix(weight, 0.01 + torch.arange(30) * 0.04 / 29)
    assert matrix.is_packed == processor
    return matrix


def test_each_row_is_rounded_by_its_largest_value(processor):
    weight = torch.tensor([[127.0, -12.4, 0.6], [0.0, -0.5, 0.25], [0.0, 0.0, 0.0]])
    matrix = Int8Matrix.quantize(weight)
    assert matrix.weight.tolist() == [[127, -12, 1], [0, -127, 64], [0, 0, 0]]
    assert matrix.weight.dtype == torch.int8
    expected = [[127, -12, 1], [0, -0.5, 0.5 * 64 / 127], [0, 0, 0]]
    torch.testing.assert_close(matrix.dequantize(), torch.tensor(expected))


@pytest.mark.parametrize("num_rows", [0, 1, 2, 7, 64, 65, 200])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_product_is_that_of_the_widened_matrix(matrix, num_rows, has_bias):
    torch.manual_seed(1)
    inputs = torch.randn(num_rows, 40) * torch.logspace(-6, 6, num_rows).unsqueeze(1)
    expected = inputs.numpy().astype("float64") @ matrix.dequantize().numpy().astype("float64").T
    size = numpy.abs(expected).max(axis=1, initial=1e-30, keepdims=True)
    bias = torch.randn(30) if has_bias else None
    if has_bias:
        expected = expected + bias.numpy()
    found = matrix.product(inputs, bias).numpy()
    assert found.shape == (num_rows, 30)
    assert (numpy.abs(found - expected) <= 1e-4 * size + 1e-6).all()


@pytest.mark.parametrize("num_rows", [2, 63, 64, 65, 130])
def test_a_row_does_not_depend_on_the_others(matrix, num_rows):
    torch.manual_seed(2)
    inputs = torch.randn(num_rows, 40)
    alone = matrix.product(inputs[:1])
    inputs[1:] *= 1000
    torch.testing.assert_close(matrix.product(inputs)[:1], alone, rtol=1e-6, atol=1e-6)


def test_a_row_of_zeros_gives_nothing(matrix):
    assert torch.equal(matrix.product(torch.zeros(3, 40)), torch.zeros(3, 30))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_is_not_finite_shows_in_its_row_only(matrix, value):
    inputs = torch.ones(3, 40)
    inputs[1, 5] = value
    finite = matrix.product(inputs).isfinite()
    assert finite[0].all() and finite[2].all()
    # Nothing but 0 hides it, where it is not multiplied.
    assert not finite[1][matrix.weight[:, 5] != 0].any()


def test_rows_and_columns_need_not_lie_side_by_side(matrix):
    inputs = torch.randn(40, 7).t()
    torch.testing.assert_close(matrix.product(inputs), matrix.product(inputs.contiguous()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_result_has_the_type_of_the_inputs(matrix, dtype):
    inputs = torch.randn(5, 40, dtype=dtype)
    found = matrix.product(inputs, torch.ones(30))
    assert found.dtype == dtype
    expected = linear(inputs.double(), matrix.dequantize().double()) + 1
    torch.testing.assert_close(found.double(), expected, rtol=0.01, atol=0.02)


def test_inputs_and_bias_are_left_as_they_are(matrix):
    given = [torch.randn(5, 40), torch.randn(30)]
    before = [tensor.clone() for tensor in given]
    matrix.product(*given)
    assert all(map(torch.equal, given, before))


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, copy.copy, lambda matrix: pickle.loads(pickle.dumps(matrix))]
)
def test_a_copy_is_the_same_matrix(matrix, duplicate):
    twin = duplicate(matrix)
    assert torch.equal(twin.weight, matrix.weight)
    inputs = torch.randn(5, 40)
    assert torch.equal(twin.product(inputs), matrix.product(inputs))


def test_a_matrix_moves_to_another_device_and_keeps_its_place_on_this_one(matrix):
    assert matrix.to(torch.device("cpu")) is matrix
    moved = matrix.to(torch.device("meta"))
    assert moved.weight.device.type == moved.scale.device.type == "meta"
    assert moved.product(torch.empty(3, 40, device="meta")).shape == (3, 30)
