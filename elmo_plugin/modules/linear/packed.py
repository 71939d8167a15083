from typing import Any, Callable, Dict, Optional, Tuple, TypeVar

import torch
from torch.nn.functional import linear

from elmo_plugin.modules import tuning
from elmo_plugin.modules.linear.products import (
    HAS_ONEDNN,
    ONEDNN_TAKES_BFLOAT16,
    padded_linear,
    padded_rows,
    with_rows,
)
from elmo_plugin.util.gradients import tracks_gradients
from elmo_plugin.util.weight_state import WeightState

Copy = TypeVar("Copy")


class PackedMatrix:
    """
    A copy of a matrix for many products with few rows, as a recurrent layer needs them.

    On a CPU PyTorch reorders a matrix for each product; here it is reordered once, into oneDNN's
    blocked layout, which makes a product of 16 rows by 512 x 16,384 three times as fast. The copy
    takes as much memory as the matrix and does not follow its changes. A small matrix is copied
    transposed instead. On a GPU, or where PyTorch lacks the operation, products are
    `torch.nn.functional.linear`.

    # Parameters

    weight : `torch.Tensor`
        Shape `(out_features, in_features)`.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight.detach()
        self._packed = None
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
        """
        The product, without gradients.

        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_rows, in_features)`.
        bias : `Optional[torch.Tensor]`
            Shape `(out_features,)`; added to every row.

        # Returns

        `torch.Tensor`
            Shape `(num_rows, out_features)`.
        """
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
    A linear layer that is fast on small batches when no gradient is tracked.

    It then multiplies with a `PackedMatrix`. That copy is cached only while the weight should not
    change: in evaluation mode, or while the weight does not require a gradient. `train()`,
    `eval()`, loading a state dict, moving to another device or type, changing the weight in place,
    assigning `weight.data`, and any forward pass that autograd tracks drop it. So do changes that
    PyTorch does not count, such as those of AllenNLP's moving average, if they are of more than
    single rows, see `WeightState`; after changes of those, call `eval()` or `train()`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        # For each packing function and its arguments: the packed weight and the copy.
        self._copies: Dict[Any, Tuple[WeightState, Any]] = {}

    def forward(self, inputs: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        # Parameters

        inputs : `torch.Tensor`
            Shape `(num_rows, in_features)`.
        bias : `Optional[torch.Tensor]`
            Shape `(out_features,)`. Default: the bias of the layer.

        # Returns

        `torch.Tensor`
            Shape `(num_rows, out_features)`.
        """
        bias = self.bias if bias is None else bias
        if tracks_gradients(self.weight, inputs, bias):
            self.drop_packed()
            return padded_linear(inputs, self.weight, bias)
        if self.caches_packed and self._can_pack(inputs):
            return self.cached(PackedMatrix).product(inputs, bias)
        return linear(inputs, self.weight, bias)

    @property
    def caches_packed(self) -> bool:
        """True while a packed copy is cached between forward passes without gradients."""
        return not self.training or not self.weight.requires_grad

    def drop_packed(self) -> None:
        """Forgets the packed copy; the next forward pass without gradients makes a new one."""
        self._copies = {}

    def cached(self, pack: Callable[..., Copy], *arguments: Any) -> Copy:
        """`pack(weight, *arguments)`, made anew only if the weight has changed since."""
        weight, copy = self.weight, self._copies.get((pack, arguments))
        if copy is None or not copy[0].is_current([weight]):
            copy = WeightState([weight]), pack(weight, *arguments)
            self._copies[pack, arguments] = copy
        return copy[1]

    def _can_pack(self, inputs: torch.Tensor) -> bool:
        return (
            PackedMatrix.can_pack(inputs.device, inputs.dtype)
            and inputs.dtype == self.weight.dtype
            and not torch.is_autocast_enabled("cpu")
            and inputs.size(0) > 0
        )

    def train(self, mode: bool = True) -> "PackedLinear":
        """Drops the packed copy too; `eval()` calls this."""
        self.drop_packed()
        return super().train(mode)

    def _apply(self, fn: Callable, recurse: bool = True) -> "PackedLinear":
        self.drop_packed()
        return super()._apply(fn, recurse)

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        self.drop_packed()
        name, scale = f"{prefix}weight", state_dict.get(f"{prefix}scale")
        if scale is not None and name in state_dict:
            # The state of an `Int8Linear`.
            state_dict = {**state_dict, name: state_dict[name] * scale.unsqueeze(1)}
            del state_dict[f"{prefix}scale"]
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __getstate__(self) -> Dict[str, Any]:
        # oneDNN's layout can be neither copied nor pickled; a copy of the layer packs again.
        return {**self.__dict__, "_copies": {}}
