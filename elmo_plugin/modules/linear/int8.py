from functools import lru_cache
from typing import Any, Callable, Dict, Optional

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules import tuning
from elmo_plugin.modules.linear.packed import tracks_gradients
from elmo_plugin.util.quantized import quantized_rows

# Inputs are scaled to integers of at most this size, so that their high byte fits: 127 * 256.
_LARGEST = 32512.0
# Zero point of both bytes of such an integer, so that neither is negative. Adding 0.5 turns
# truncation into rounding.
_ZERO = 128
_OFFSET = torch.tensor(_ZERO * 257 + 0.5)


class Int8Linear(torch.nn.Module):
    """
    A `PackedLinear` for inference only, with an int8 weight, from -127 to 127, and one scale per
    row: an eighth of the memory of a float32 layer with its packed copy.

    On CPUs with VNNI products are computed in integers. Each row of inputs is scaled by its largest
    value and rounded to 16 bits, so rows are independent and only the weight loses precision. The
    low and high bytes are rows of one product. Elsewhere the weight is converted to float32 for
    every product: small, but slow.

    A state dict holds the integers as `weight` and their scales as `scale`. This layer and a
    `PackedLinear` can load each other's state.
    """

    caches_packed = True
    scale: torch.Tensor

    def __init__(self, integers: torch.Tensor, scale: torch.Tensor, bias: Any) -> None:
        super().__init__()
        self.bias: Optional[torch.nn.Parameter] = bias
        # A buffer, so that a biLM's fingerprint includes it.
        self.register_buffer("scale", scale)
        self._store(integers, scale)

    @classmethod
    def from_linear(cls, layer: torch.nn.Linear) -> "Int8Linear":
        bias = layer.bias
        if bias is not None:
            bias = torch.nn.Parameter(bias.detach().float(), requires_grad=bias.requires_grad)
        return cls(*quantized_rows(layer.weight), bias)

    def _store(self, integers: torch.Tensor, scale: torch.Tensor) -> None:
        """Keeps a weight, in oneDNN's layout on CPUs with VNNI."""
        self.scale, self._shape, self._unit = scale, integers.shape, scale / _LARGEST
        self.is_packed = integers.device.type == "cpu" and has_fast_int8_products()
        if self.is_packed:
            integers = torch.ops.onednn.qlinear_prepack(integers, None)
        self._stored = integers

    @property
    def integers(self) -> torch.Tensor:
        """Shape `(out_features, in_features)`; a copy if the weight is packed."""
        return self._stored.to_dense().t().contiguous() if self.is_packed else self._stored

    def dequantize(self) -> torch.Tensor:
        return self.integers * self.scale.unsqueeze(1)

    @property
    def weight(self) -> torch.Tensor:
        """The weight in float32; if packed, a tensor on `meta`, except under autocast."""
        if self.is_packed and not torch.is_autocast_enabled(self.scale.device.type):
            return torch.empty(self._shape, device="meta")
        return self.dequantize()

    def drop_packed(self) -> None:
        """Refuses a forward pass with gradients, which could not reach the weight."""
        raise RuntimeError(
            "Expected weights that can be trained, found int8. Load the biLM with `dtype` float32, "
            "or run it under `torch.no_grad()`."
        )

    def forward(self, inputs: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Like `PackedLinear.forward`; raises `RuntimeError` if autograd would track the result."""
        bias = self.bias if bias is None else bias
        if tracks_gradients(inputs, bias):
            self.drop_packed()
        values, num_rows = inputs.float(), len(inputs)
        if not self.is_packed or not num_rows:
            product = linear(values, self.dequantize())
        else:
            multiple = tuning.INT8_ROW_MULTIPLE
            if num_rows > multiple:
                values = pad(values, (0, 0, 0, -num_rows % multiple))
            # Above 0, because a row of zeros is divided by it too.
            largest = values.abs().amax(dim=1, keepdim=True).clamp_min_(1e-30)
            numbers = torch.add(_OFFSET, values / largest, alpha=_LARGEST).to(torch.int32)
            # Shape: (2 * num_rows, in_features)
            halves = torch.cat([numbers, numbers >> 8]).to(torch.uint8)
            # Shape: (num_rows, out_features)
            low, high = _product(halves, self._stored, self._unit).chunk(2)
            product = low.add_(high, alpha=256.0).mul_(largest)[:num_rows]
        if bias is not None:
            product.add_(bias)
        return product.to(inputs.dtype)

    #: Called like `PackedMatrix.product`.
    product = forward

    def _apply(self, fn: Callable, recurse: bool = True) -> "Int8Linear":
        scale = self.scale
        super()._apply(fn, recurse)
        # The scale moves, but stays float32.
        device, self.scale = self.scale.device, scale
        if device != scale.device:
            self._store(self.integers.to(device), scale.to(device))
        return self

    def _save_to_state_dict(self, destination: Dict[str, Any], prefix: str, *args: Any) -> None:
        super()._save_to_state_dict(destination, prefix, *args)
        destination[f"{prefix}weight"] = self.integers

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        _, _, missing_keys, _, error_msgs = args
        name, state = f"{prefix}weight", dict(state_dict)
        weight = state.pop(name, None)
        if weight is None:
            missing_keys.append(name)
        elif f"{prefix}scale" in state:
            # The state dict may have been converted to another type.
            weight = weight.to(torch.int8)
        elif weight.is_floating_point():
            weight, state[f"{prefix}scale"] = quantized_rows(weight.to(self.scale.device))
        super()._load_from_state_dict(state, prefix, *args)
        if weight is not None and weight.shape != self._shape:
            shapes = tuple(self._shape), tuple(weight.shape)
            error_msgs.append("{}: expected shape {}, found {}.".format(name, *shapes))
        elif weight is not None:
            # A copy: the loaded tensor may be memory-mapped, and a new address shows a new weight.
            self._store(weight.to(self.scale.device, copy=True), self.scale.clone())

    def __getstate__(self) -> Dict[str, Any]:
        # oneDNN's layout can be neither copied nor pickled.
        return {**self.__dict__, "_stored": self.integers}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        super().__setstate__(state)
        self._store(self._stored, self.scale)


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
