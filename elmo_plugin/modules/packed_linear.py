from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules import tuning
from elmo_plugin.util.tensors import WeightState, is_exporting

HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(
    torch.ops.mkldnn, "_reorder_linear_weight"
)
ONEDNN_TAKES_BFLOAT16 = HAS_ONEDNN and torch.ops.mkldnn._is_mkldnn_bf16_supported()
Copy = TypeVar("Copy")


def tracks_gradients(*tensors: Optional[torch.Tensor]) -> bool:
    return torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in tensors
    )


def padded_rows(num_rows: int) -> int:
    """
    Rounds a number of rows up for a product, by at most 3 or a sixteenth.

    oneDNN compiles code for every new number of rows, which takes up to 15 ms. So only few numbers
    are used: multiples of `ROW_MULTIPLE` up to 128, then 16 from each power of two to the next.
    """
    multiple = max(tuning.ROW_MULTIPLE, 2 ** num_rows.bit_length() // 32)
    return -(-num_rows // multiple) * multiple


def onednn_compiles(values: torch.Tensor) -> bool:
    """True if oneDNN compiles code for products of such values, under the current autocast."""
    dtype = values.dtype
    if torch.is_autocast_enabled(values.device.type):
        dtype = torch.get_autocast_dtype(values.device.type)
    return ONEDNN_TAKES_BFLOAT16 and values.device.type == "cpu" and dtype == torch.bfloat16


def with_rows(values: torch.Tensor, num_rows: int) -> torch.Tensor:
    """The first `num_rows` rows of a matrix; rows of zeros follow if it has fewer."""
    num_missing = num_rows - len(values)
    return pad(values, (0, 0, 0, num_missing)) if num_missing > 0 else values[:num_rows]


def transposed_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """
    `left.t() @ right` of shapes `(num_rows, m)` and `(num_rows, n)`, in the order that is faster on
    a CPU. If one has more rows than the other, the additional rows must be zeros.
    """
    if left.size(1) > right.size(1):
        return transposed_product(right, left).t()
    num_rows = min(len(left), len(right))
    if not onednn_compiles(left):
        return left[:num_rows].t() @ right[:num_rows]
    num_rows = padded_rows(num_rows)
    # Transposing the smaller one in memory costs less than it saves.
    return with_rows(left, num_rows).t().contiguous() @ with_rows(right, num_rows)


def column_sums(values: torch.Tensor) -> torch.Tensor:
    """The sum of the rows of a matrix, shape `(num_columns,)`."""
    # In half precision a sum is rounded at each step; a product accumulates in float32.
    if values.dtype in (torch.bfloat16, torch.float16):
        return (values.new_ones(1, len(values)) @ values).squeeze(0)
    return values.sum(dim=0)


class PackedMatrix:
    """
    A copy of a matrix, shape `(out_features, in_features)`, for many products with few rows.

    On a CPU PyTorch reorders a matrix for each product. This class reorders it once, into oneDNN's
    blocked layout: a product of 16 rows by 512 x 16,384 is three times as fast. The copy takes as
    much memory as the matrix and does not follow its changes. A small matrix is copied transposed
    instead. On a GPU, or where PyTorch lacks the operation, nothing is copied.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight.detach()
        self._packed: Any = None
        self._is_small_for_one_row = False
        if not self.can_pack(weight.device, weight.dtype):
            return
        self._is_small_for_one_row = (
            weight.dtype == torch.float32 and weight.numel() <= tuning.SMALL_MATRIX_FOR_ONE_ROW
        )
        if self._is_small_for_one_row and weight.numel() <= tuning.SMALL_MATRIX:
            self.weight = self.weight.t().contiguous().t()
        else:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight, None)

    @staticmethod
    def can_pack(device: torch.device, dtype: torch.dtype) -> bool:
        """True if packing speeds up such products on this machine."""
        return (
            HAS_ONEDNN
            and device.type == "cpu"
            and (dtype == torch.float32 or ONEDNN_TAKES_BFLOAT16 and dtype == torch.bfloat16)
        )

    def product(self, inputs: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Multiplies inputs `(num_rows, in_features)` and adds the bias, without gradients."""
        num_rows = len(inputs)
        is_one_row = num_rows == 1 and self._is_small_for_one_row
        if self._packed is None or is_one_row or num_rows == 0:
            return linear(inputs, self.weight, bias)
        rows = padded_rows(num_rows) if num_rows > tuning.ROW_MULTIPLE else num_rows
        inputs = with_rows(inputs, rows)
        product = torch.ops.mkldnn._linear_pointwise(inputs, self._packed, bias, "none", [], "")
        return product[:num_rows]


class PackedLinear(torch.nn.Linear):
    """
    A linear layer that multiplies with a `PackedMatrix` when no gradient is tracked, which is fast
    on small batches.

    That copy is cached only while the weight should not change: in evaluation mode, or while the
    weight requires no gradient. It is dropped by `train()`, `eval()`, loading a state dict, moving
    to another device or type, changing the weight in place, assigning `weight.data`, and any
    forward pass that autograd tracks.

    Changes that PyTorch does not count, such as AllenNLP's moving average, are noticed too, unless
    they change only single rows (see `WeightState`); then call `eval()` or `train()`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        # By packing function and arguments: the state of the packed weight, and the copy.
        self._copies: Dict[Any, Tuple[WeightState, Any]] = {}

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Maps `(num_rows, in_features)` to `(num_rows, out_features)`."""
        if is_exporting():
            return linear(inputs, self.weight, self.bias)
        if tracks_gradients(self.weight, inputs, self.bias):
            self.drop_packed()
            num_rows = len(inputs)
            if onednn_compiles(inputs):
                inputs = with_rows(inputs, padded_rows(num_rows))
            return linear(inputs, self.weight, self.bias)[:num_rows]
        if (
            self.caches_packed
            and inputs.dtype == self.weight.dtype
            and not torch.is_autocast_enabled(inputs.device.type)
        ):
            return self.packed().product(inputs, self.bias)
        return linear(inputs, self.weight, self.bias)

    @property
    def caches_packed(self) -> bool:
        """True while a packed copy is cached between forward passes without gradients."""
        return not self.training or not self.weight.requires_grad

    def packed(self) -> PackedMatrix:
        """The weight for products without gradients, cached if it is a copy."""
        if PackedMatrix.can_pack(self.weight.device, self.weight.dtype):
            return self.cached(PackedMatrix)
        return PackedMatrix(self.weight)

    def drop_packed(self) -> None:
        """Forgets packed copies before a forward pass that autograd tracks."""
        self._copies = {}

    def cached(self, pack: Callable[..., Copy], *arguments: Any) -> Copy:
        """`pack(weight, *arguments)`, made anew only if the weight has changed since."""
        weight, copy = self.weight, self._copies.get((pack, arguments))
        if copy is None or not copy[0].is_current([weight]):
            copy = WeightState([weight]), pack(weight, *arguments)
            self._copies[pack, arguments] = copy
        return copy[1]

    def train(self, mode: bool = True) -> "PackedLinear":
        self._copies = {}
        return super().train(mode)

    def _apply(self, fn: Callable, recurse: bool = True) -> "PackedLinear":
        self._copies = {}
        return super()._apply(fn, recurse)

    def _load_from_state_dict(self, *args: Any) -> None:
        self._copies = {}
        super()._load_from_state_dict(*args)

    def __getstate__(self) -> Dict[str, Any]:
        # oneDNN's layout can be neither copied nor pickled; a copy of the layer packs again.
        return {**self.__dict__, "_copies": {}}
