"""`PackedMatrix` against `torch.nn.functional.linear`."""

import pytest
import torch
from torch.nn.functional import linear

from elmo_plugin.modules.linear.packed import PackedMatrix
from elmo_plugin.modules.linear.products import HAS_ONEDNN, ONEDNN_TAKES_BFLOAT16

TYPES = [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 0.02)]


# Small, small for a single row, and neither.
SHAPES = [(30, 40), (500, 440), (500, 1100)]


@pytest.fixture(params=SHAPES, ids=str)
def weight(request):
    return torch.randn(request.param, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype, most", TYPES)
@pytest.mark.parametrize("num_rows", [0, 1, 16, 64, 65, 200])
@pytest.mark.parametrize("has_bias", [True, False])
def test_the_product_is_that_of_linear(weight, dtype, most, num_rows, has_bias):
    torch.manual_seed(1)
    weight = weight.to(dtype)
    out_features, in_features = weight.shape
    inputs = torch.randn(num_rows, in_features).to(dtype)
    bias = torch.randn(out_features).to(dtype) if has_bias else None
    expected = linear(inputs.double(), weight.double(), None if bias is None else bias.double())
    before = [value.clone() for value in (inputs, bias) if value is not None]
    found = PackedMatrix(weight).product(inputs, bias)
    assert found.dtype == dtype and found.shape == (num_rows, out_features)
    torch.testing.assert_close(found.double(), expected, rtol=most, atol=most * in_features / 8)
    # What is added belongs to the caller.
    after = [value for value in (inputs, bias) if value is not None]
    assert all(torch.equal(*pair) for pair in zip(before, after))


def test_a_matrix_that_does_not_lie_row_by_row_is_packed_as_well(weight):
    inputs = torch.randn(5, len(weight))
    found = PackedMatrix(weight.t()).product(inputs)
    # A sum of so many numbers.
    most = 1e-5 * len(weight) / 30
    torch.testing.assert_close(found, inputs @ weight, rtol=1.3e-6, atol=most)


def test_it_knows_what_gains_by_packing():
    cpu = torch.device("cpu")
    assert PackedMatrix.can_pack(cpu, torch.float32) == HAS_ONEDNN
    packed = [PackedMatrix(torch.zeros(shape))._packed is not None for shape in SHAPES]
    assert packed == [False, HAS_ONEDNN, HAS_ONEDNN]
    assert PackedMatrix.can_pack(cpu, torch.bfloat16) == ONEDNN_TAKES_BFLOAT16
    assert not PackedMatrix.can_pack(cpu, torch.float64)
    assert not PackedMatrix.can_pack(torch.device("cuda"), torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_parameter_gets_no_gradient_through_it(weight, dtype):
    parameter = torch.nn.Parameter(weight.to(dtype))
    product = PackedMatrix(parameter).product(torch.randn(5, weight.size(1), dtype=dtype))
    assert not product.requires_grad
