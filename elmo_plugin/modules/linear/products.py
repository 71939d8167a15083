"""Matrix products padded to few different sizes for oneDNN, and sums in half precision."""

from typing import Optional

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules import tuning

HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_reorder_linear_weight"
)
ONEDNN_TAKES_BFLOAT16 = HAS_ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()


def padded_rows(num_rows: int) -> int:
    """
    The number of rows, at most 3 or a sixteenth more, to which matrices are padded for a product.

    oneDNN compiles code for every new number of rows, which takes up to 15 ms, so only few numbers
    are used: multiples of `ROW_MULTIPLE` up to 128, then 16 from each power of two to the next.
    """
    multiple = max(tuning.ROW_MULTIPLE, 2 ** num_rows.bit_length() // 32)
    return -(-num_rows // multiple) * multiple


def onednn_compiles(values: torch.Tensor) -> bool:
    """
    True if oneDNN compiles code for products of such values, under the current `torch.autocast`.
    """
    dtype = values.dtype
    if torch.is_autocast_enabled(values.device.type):
        dtype = torch.get_autocast_dtype(values.device.type)
    return ONEDNN_TAKES_BFLOAT16 and values.device.type == "cpu" and dtype == torch.bfloat16


def with_rows(values: torch.Tensor, num_rows: int) -> torch.Tensor:
    """The first `num_rows` rows of a matrix, followed by rows of zeros if it has fewer."""
    num_missing = num_rows - len(values)
    return pad(values, (0, 0, 0, num_missing)) if num_missing > 0 else values[:num_rows]


def padded_linear(
    inputs: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """
    `torch.nn.functional.linear` of inputs of shape `(num_rows, in_features)`. They are padded where
    oneDNN compiles its products and those of its backward pass.
    """
    num_rows = len(inputs)
    if onednn_compiles(inputs):
        inputs = with_rows(inputs, padded_rows(num_rows))
    return linear(inputs, weight, bias)[:num_rows]


def transposed_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """
    `left.t() @ right` of matrices of shapes `(num_rows, m)` and `(num_rows, n)`, in the order that
    is faster on a CPU. If one has more rows than the other, the additional rows must be zeros.
    """
    if left.size(1) > right.size(1):
        return transposed_product(right, left).t()
    num_rows = min(len(left), len(right))
    if not onednn_compiles(left):
        return left[:num_rows].t() @ right[:num_rows]
    num_rows = padded_rows(num_rows)
    # To transpose the smaller one in memory costs less than it saves.
    return with_rows(left, num_rows).t().contiguous() @ with_rows(right, num_rows)


def column_sums(values: torch.Tensor) -> torch.Tensor:
    """The sum of the rows of a matrix `(num_rows, num_columns)`, shape `(num_columns,)`."""
    # In half precision a sum is rounded at each step; a product accumulates in float32.
    if values.dtype in (torch.bfloat16, torch.float16):
        return (values.new_ones(1, len(values)) @ values).squeeze(0)
    return values.sum(dim=0)
