from typing import Any, Callable, Dict, Optional, Tuple

import torch
from torch.nn.functional import linear

from elmo_plugin.modules.linear.packed_matrix import PackedMatrix


class PackedLinear(torch.nn.Linear):
    """
    A linear layer that is fast on small batches when nothing has to be learned.

    It then multiplies with a `PackedMatrix`, which is renewed when the weight changes. A change
    through `weight.data` is not noticed until the layer learns. With gradients, or where packing is
    not possible, this is `torch.nn.Linear`.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self._packed: Optional[PackedMatrix] = None
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
            product = linear(inputs, self.weight_to_learn(), self.bias)
            return product if plus is None else product + plus
        packed = self._packed_weight()
        if plus is None or plus.dim() == 1:
            bias = self.bias if plus is None or self.bias is None else self.bias + plus
            return packed.product(inputs, bias=plus if bias is None else bias)
        return packed.product(inputs, bias=self.bias, plus=plus)

    def weight_to_learn(self) -> torch.nn.Parameter:
        """
        The weight, for a product that learns. Fused optimizers, and moving averages through
        `weight.data`, leave no trace in its version: a layer that learns in between packs again.
        """
        self._packed = None
        return self.weight

    def _can_use_packed(self, inputs: torch.Tensor) -> bool:
        learns = torch.is_grad_enabled() and (self.weight.requires_grad or inputs.requires_grad)
        return (
            not learns
            and PackedMatrix.can_pack(inputs.device, inputs.dtype)
            # Made in inference mode, a weight changes without a trace.
            and not self.weight.is_inference()
            and inputs.dtype == self.weight.dtype
            and not torch.is_autocast_enabled("cpu")
            and inputs.size(0) > 0
        )

    def _packed_weight(self) -> PackedMatrix:
        # The version counts changes in place; the address tells a new tensor.
        version = (self.weight._version, self.weight.data_ptr())
        packed = self._packed
        if packed is None or self._packed_version != version:
            packed = PackedMatrix(self.weight)
            self._packed, self._packed_version = packed, version
        return packed

    def train(self, mode: bool = True) -> "PackedLinear":
        # The weight may have been changed without a trace, through `weight.data`.
        self._packed = None
        return super().train(mode)

    def _apply(self, fn: Callable, recurse: bool = True) -> "PackedLinear":
        # To another type and back: rounded, at the old address perhaps, with the old version.
        self._packed = None
        return super()._apply(fn, recurse)

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        name, scale = f"{prefix}weight", state_dict.get(f"{prefix}scale")
        if scale is not None and name in state_dict:
            # The state of an `Int8Linear`.
            state_dict = {**state_dict, name: state_dict[name] * scale.unsqueeze(1)}
            del state_dict[f"{prefix}scale"]
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __getstate__(self) -> Dict[str, Any]:
        # oneDNN's layout can be neither copied nor pickled; a copy makes its own.
        return {**self.__dict__, "_packed": None, "_packed_version": None}
