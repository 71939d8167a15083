"""Padded products against products without padding."""

import pytest
import torch
from torch.nn.functional import linear

from elmo_plugin.modules.linear import products
from elmo_plugin.modules.linear.products import (
    column_sums,
    padded_linear,
    padded_rows,
    transposed_product,
    with_rows,
)
from tests.bilm.oracle import relative_error

TYPES = [torch.float64, torch.float32, torch.bfloat16]
ERRORS = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 0.01}


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """The path of a processor with bfloat16."""
    monkeypatch.setattr(products, "ONEDNN_TAKES_BFLOAT16", True)


def test_there_are_few_different_numbers_of_rows():
    numbers = [padded_rows(number) for number in range(1, 8193)]
    assert all(number <= padded for number, padded in enumerate(numbers, start=1))
    assert all(padded - number < max(4, number / 16) for number, padded in enumerate(numbers, 1))
    assert len(set(numbers)) == 128 // 4 + 6 * 16
    assert all(padded_rows(number) == number for number in numbers)
    assert padded_rows(0) == 0


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("num_rows", [0, 1, 5, 64, 131])
def test_padding_changes_neither_values_nor_gradients(dtype, num_rows):
    torch.manual_seed(1)
    shapes = [(num_rows, 6), (7, 6), (7,)]
    exact = [torch.randn(shape, dtype=torch.float64).to(dtype) for shape in shapes]
    tensors = [tensor.clone().requires_grad_() for tensor in exact]
    references = [tensor.double().requires_grad_() for tensor in exact]
    found, expected = padded_linear(*tensors), linear(*references)
    assert found.shape == expected.shape and found.dtype == dtype
    found.square().sum().backward()
    expected.square().sum().backward()
    if num_rows:
        assert relative_error(found, expected) < ERRORS[dtype]
    for tensor, reference in zip(tensors, references):
        if num_rows:
            assert relative_error(tensor.grad, reference.grad) < 2 * ERRORS[dtype]
        else:
            assert not tensor.grad.any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("widths", [(3, 5), (5, 3)])
@pytest.mark.parametrize("extra_rows", [0, 9])
def test_a_transposed_product_ignores_rows_of_zeros(dtype, widths, extra_rows):
    torch.manual_seed(2)
    left, right = (torch.randn(131, width).to(dtype) for width in widths)
    expected = left.double().t() @ right.double()
    found = transposed_product(with_rows(left, 131 + extra_rows), right)
    assert found.shape == expected.shape
    assert relative_error(found, expected) < ERRORS[dtype]
    assert relative_error(transposed_product(left, with_rows(right, 140)), expected) < ERRORS[dtype]


def test_rows_are_added_and_removed():
    values = torch.arange(6.0).view(3, 2)
    assert torch.equal(with_rows(values, 2), values[:2])
    assert torch.equal(with_rows(values, 3), values)
    assert torch.equal(with_rows(values, 5), torch.cat([values, torch.zeros(2, 2)]))


@pytest.mark.parametrize("dtype", TYPES)
def test_sums_are_not_rounded_at_each_step(dtype):
    # In steps of bfloat16 the sum of ones stays at 256.
    assert column_sums(torch.ones(4096, 3, dtype=dtype)).tolist() == [4096.0] * 3
