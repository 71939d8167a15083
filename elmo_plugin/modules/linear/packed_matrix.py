from typing import Optional

import torch
from torch.nn.functional import linear, pad

__all__ = ["PackedMatrix"]

# oneDNN prepares code for every new number of rows, which takes as long as a small product. Above
# this number, rows are filled up to a multiple of it, so that few numbers occur.
_ROWS = 4
# Elements of a float32 matrix so small that oneDNN's preparations cost more than its layout saves,
# and of one for which that holds for a single row.
_SMALL, _SMALL_FOR_A_ROW = 192 * 1024, 512 * 1024


class PackedMatrix:
    """
    A matrix that many products in a row have on their right, as a recurrent layer needs it.

    PyTorch lays a matrix out anew for each product on a CPU; here it is laid out once, in
    oneDNN's own blocks, which makes a product of 16 rows by 512 x 16,384 three times as fast. The
    copy costs as much memory as the matrix and does not follow its changes. A small matrix is laid
    out transposed instead. On a GPU, or where PyTorch lacks the operation, products are
    `torch.nn.functional.linear`.

    # Parameters

    weight : `torch.Tensor`
        Shape `(out_features, in_features)`.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight.detach()
        self._packed = None
        self._is_fast_for_a_row = False
        if not self.can_pack(weight.device, weight.dtype):
            return
        self._is_fast_for_a_row = (
            weight.dtype == torch.float32 and weight.numel() <= _SMALL_FOR_A_ROW
        )
        if self._is_fast_for_a_row and weight.numel() <= _SMALL:
            self.weight = self.weight.t().contiguous().t()
        else:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, None)

    @staticmethod
    def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
        """Whether products of this kind gain anything here."""
        return (
            _HAS_ONEDNN
            and device.type == "cpu"
            and (dtype == torch.float32 or _HAS_BFLOAT16 and dtype == torch.bfloat16)
        )

    def product(
        self,
        inputs: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        plus: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """
        Without a gradient.

        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_rows, in_features)`.
        bias : `Optional[torch.Tensor]`
            Shape `(out_features,)`; added to every row.
        plus : `Optional[torch.Tensor]`
            Shape `(num_rows, out_features)`; added as well.

        # Returns

        `torch.Tensor`
            Shape `(num_rows, out_features)`.
        """
        num_rows = len(inputs)
        is_row = num_rows == 1 and self._is_fast_for_a_row
        if self._packed is None or is_row or num_rows == 0:
            if plus is None:
                return linear(inputs, self.weight, bias)
            plus = plus if bias is None else plus + bias
            return torch.addmm(plus, inputs, self.weight.t())
        extra_rows = -num_rows % _ROWS if num_rows > _ROWS else 0
        if extra_rows:
            inputs = pad(inputs, (0, 0, 0, extra_rows))
        if plus is None:
            product = torch.ops.mkldnn._linear_pointwise(inputs, self._packed, bias, "none", [], "")
        else:
            plus = pad(plus, (0, 0, 0, extra_rows)) if extra_rows else plus
            product = torch.ops.mkldnn._linear_pointwise.binary(
                inputs, plus, self._packed, bias, "add"
            )
        return product[:num_rows]


_HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_reorder_linear_weight"
)
_HAS_BFLOAT16 = _HAS_ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()
