from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch.nn.functional import linear, pad

# oneDNN prepares code for every new number of rows, which takes as long as a small product. Above
# this number, rows are filled up to a multiple of it, so that few numbers occur.
_ROWS = 64


class PackedLinear(torch.nn.Linear):
    """
    A linear layer that is fast on small batches when nothing has to be learned.

    A recurrent layer multiplies the same matrix at every step. PyTorch lays that matrix out anew
    for each product on a CPU; here it is laid out once, in oneDNN's own blocks, which makes a
    product of 16 rows by 512 x 16,384 three times as fast. The copy costs as much memory as the
    weight and is renewed when the weight changes. With gradients, on a GPU, or where PyTorch
    lacks the operation, this is `torch.nn.Linear`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self._packed: Optional[torch.Tensor] = None
        self._packed_version: Optional[Tuple[int, int]] = None

    def forward(self, inputs: torch.Tensor, plus: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_rows, in_features)`.
        plus : `Optional[torch.Tensor]`
            Added to the product: shape `(out_features,)` or `(num_rows, out_features)`.

        # Returns

        `torch.Tensor`
            Shape `(num_rows, out_features)`.
        """
        if not self._can_use_packed(inputs):
            # A change through `weight.data`, as moving averages make it, leaves no trace in the
            # weight's version: a layer that learns in between packs again.
            self._packed = None
            product = linear(inputs, self.weight, self.bias)
            return product if plus is None else product + plus
        num_rows = len(inputs)
        extra_rows = -num_rows % _ROWS if num_rows > _ROWS else 0
        if extra_rows:
            inputs = pad(inputs, (0, 0, 0, extra_rows))
        packed = self._packed_weight()
        if plus is None or plus.dim() == 1:
            bias = self.bias if plus is None or self.bias is None else self.bias + plus
            bias = plus if bias is None else bias
            product = torch.ops.mkldnn._linear_pointwise(inputs, packed, bias, "none", [], "")
        else:
            plus = pad(plus, (0, 0, 0, extra_rows)) if extra_rows else plus
            product = torch.ops.mkldnn._linear_pointwise.binary(
                inputs, plus, packed, self.bias, "add"
            )
        return product[:num_rows]

    def _can_use_packed(self, inputs: torch.Tensor) -> bool:
        learns = torch.is_grad_enabled() and (self.weight.requires_grad or inputs.requires_grad)
        return (
            not learns
            and _HAS_ONEDNN
            # Made in inference mode, a weight changes without a trace.
            and not self.weight.is_inference()
            and inputs.device.type == "cpu"
            and inputs.dtype == self.weight.dtype
            and (inputs.dtype == torch.float32 or _HAS_BFLOAT16 and inputs.dtype == torch.bfloat16)
            and not torch.is_autocast_enabled("cpu")
            and inputs.size(0) > 0
        )

    def _packed_weight(self) -> torch.Tensor:
        # The version counts changes in place; the address tells a new tensor.
        version = (self.weight._version, self.weight.data_ptr())
        packed = self._packed
        if packed is None or self._packed_version != version:
            packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), None)
            self._packed, self._packed_version = packed, version
        return packed

    def _apply(self, fn: Callable, recurse: bool = True) -> "PackedLinear":
        # To another type and back: rounded, at the old address perhaps, with the old version.
        self._packed = None
        return super()._apply(fn, recurse)

    def __getstate__(self) -> Dict[str, Any]:
        # oneDNN's layout can be neither copied nor pickled; a copy makes its own.
        return {**self.__dict__, "_packed": None, "_packed_version": None}


_HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_reorder_linear_weight"
)
_HAS_BFLOAT16 = _HAS_ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()
