from functools import lru_cache
from typing import Any, Callable, Dict, Optional

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules import tuning
from elmo_plugin.modules.linear.packed import PackedLinear, PackedMatrix, tracks_gradients
from elmo_plugin.util.quantized import quantized_rows

# Inputs are scaled to integers of at most this size, so that their high byte fits: 127 * 256.
_LARGEST = 32512.0
# Zero point of both bytes of such an integer, so that neither is negative. Adding 0.5 turns
# truncation into rounding.
_ZERO = 128
_OFFSET = torch.tensor(_ZERO * 257 + 0.5)


class Int8Matrix(PackedMatrix):
    """
    An int8 matrix in oneDNN's layout, and the scale of each row, for products in integers.

    Each row of inputs is scaled by its largest value and rounded to 16 bits, so rows are
    independent and only the matrix loses precision. The low and high bytes are rows of one product.
    """

    def __init__(self, integers: torch.Tensor, scale: torch.Tensor) -> None:
        self._packed = torch.ops.onednn.qlinear_prepack(integers, None)
        self._unit = scale / _LARGEST

    def product(self, inputs: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        values, num_rows = inputs.float(), len(inputs)
        multiple = tuning.INT8_ROW_MULTIPLE
        if num_rows > multiple:
            values = pad(values, (0, 0, 0, -num_rows % multiple))
        # Above 0, because a row of zeros is divided by it too.
        largest = values.abs().amax(dim=1, keepdim=True).clamp_min_(1e-30)
        numbers = torch.add(_OFFSET, values / largest, alpha=_LARGEST).to(torch.int32)
        # Shape: (2 * num_rows, in_features)
        halves = torch.cat([numbers, numbers >> 8]).to(torch.uint8)
        # Shape: (num_rows, out_features)
        low, high = _product(halves, self._packed, self._unit).chunk(2)
        product = low.add_(high, alpha=256.0).mul_(largest)[:num_rows]
        return (product if bias is None else product.add_(bias)).to(inputs.dtype)


class Int8Linear(PackedLinear):
    """
    A layer for inference only, with an int8 weight, from -127 to 127, and one scale per row: a
    quarter of the memory of a `PackedLinear`, packed copies included.

    On CPUs with VNNI products are computed in integers, see `Int8Matrix`. Elsewhere the weight is
    converted to float32 for every product: small, but slow. This layer and a `PackedLinear` can
    load each other's state.
    """

    scale: torch.Tensor

    def __init__(self, layer: torch.nn.Linear) -> None:
        # Draws no random numbers.
        with torch.device("meta"):
            super().__init__(layer.in_features, layer.out_features, bias=False)
        del self.weight
        integers, scale = quantized_rows(layer.weight)
        # Buffers, so that a biLM's fingerprint includes them.
        self.register_buffer("weight", integers)
        self.register_buffer("scale", scale)
        if layer.bias is not None:
            bias = layer.bias.detach().float()
            self.bias = torch.nn.Parameter(bias, requires_grad=layer.bias.requires_grad)

    def dequantize(self) -> torch.Tensor:
        return self.weight * self.scale.unsqueeze(1)

    def values(self) -> torch.Tensor:
        """The weight in float32; where `packed` replaces it, the integers."""
        return self.weight if self.caches_packed else self.dequantize()

    @property
    def is_fast(self) -> bool:
        """True if products are computed in integers."""
        return self.weight.device.type == "cpu" and has_fast_int8_products()

    @property
    def caches_packed(self) -> bool:
        # Under autocast, recurrent layers compute in its type.
        return self.is_fast and not torch.is_autocast_enabled("cpu")

    def packed(self) -> PackedMatrix:
        return self.cached(Int8Matrix, self.scale)

    def drop_packed(self) -> None:
        """Refuses a forward pass with gradients, which could not reach the weight."""
        raise RuntimeError(
            "Expected weights that can be trained, found int8. Load the biLM with `dtype` float32, "
            "or run it under `torch.no_grad()`."
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Like `PackedLinear.forward`; raises `RuntimeError` if autograd would track the result."""
        if tracks_gradients(inputs, self.bias):
            self.drop_packed()
        if self.is_fast and len(inputs):
            return self.packed().product(inputs, self.bias)
        product = linear(inputs.float(), self.dequantize())
        return (product if self.bias is None else product.add_(self.bias)).to(inputs.dtype)

    def _apply(self, fn: Callable, recurse: bool = True) -> "Int8Linear":
        scale = self.scale
        super()._apply(fn, recurse)
        # The scale moves, but stays float32.
        self.scale = scale.to(self.scale.device)
        return self

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        weight, scale = f"{prefix}weight", f"{prefix}scale"
        value = state_dict.get(weight)
        # Not of an `Int8Linear` that lacks its scale.
        if value is not None and value.is_floating_point() and scale not in state_dict:
            integers, scales = quantized_rows(value)
            state_dict = {**state_dict, weight: integers, scale: scales}
        super()._load_from_state_dict(state_dict, prefix, *args)


def _product(inputs: torch.Tensor, packed: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    """The product of uint8 inputs with zero point `_ZERO` and a packed matrix, in float32."""
    zeros = torch.zeros(len(unit), dtype=torch.int32)
    return torch.ops.onednn.qlinear_pointwise(
        inputs, 1.0, _ZERO, packed, unit, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


@lru_cache(maxsize=None)
def has_fast_int8_products() -> bool:
    """
    True if int8 products are fast and exact on this machine. Without VNNI, or where oneDNN is told
    not to use it, two products are added in 16 bits, which can overflow.
    """
    if not (torch.backends.mkldnn.is_available() and torch.cpu._is_vnni_supported()):
        return False
    try:
        packed = torch.ops.onednn.qlinear_prepack(torch.full((16, 64), 127, dtype=torch.int8), None)
        product = _product(torch.full((1, 64), 255, dtype=torch.uint8), packed, torch.ones(16))
    # This PyTorch lacks these operations, or has others under their names.
    except (AttributeError, RuntimeError):
        return False
    return bool((product == 64.0 * 127 * (255 - _ZERO)).all())
