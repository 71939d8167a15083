from functools import lru_cache
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch.nn.functional import linear, pad

from elmo_plugin.modules import tuning
from elmo_plugin.util.gradients import tracks_gradients
from elmo_plugin.util.quantized import quantized_rows

# Inputs are scaled to integers of at most this size, so that their high byte fits: 127 * 256.
_LARGEST = 32512.0
# Zero point of both bytes of such an integer, so that neither is negative. Adding 0.5 turns
# truncation into rounding.
_ZERO = 128
_OFFSET = torch.tensor(_ZERO * 257 + 0.5)


class Int8Matrix:
    """
    A matrix quantised to int8, from -127 to 127, with one scale per row.

    A product of few rows takes as long as reading the matrix, and this one is a quarter as large as
    in float32. On CPUs with VNNI the product is computed in integers. Inputs are rounded to 16
    bits, each row scaled by its largest value, so rows are independent of each other and only the
    matrix loses precision; their low and high bytes are rows of one product. Elsewhere the matrix
    is converted to float32 for every product: small, but slow.

    # Parameters

    weight : `torch.Tensor`
        Shape `(out_features, in_features)`, int8. Replaced by oneDNN's layout on CPUs with VNNI.
    scale : `torch.Tensor`
        Shape `(out_features,)`, float32. The value of one unit, per row.
    """

    def __init__(self, weight: torch.Tensor, scale: torch.Tensor) -> None:
        self.shape = weight.shape
        self.scale = scale.detach()
        self.is_packed = weight.device.type == "cpu" and has_fast_int8_products()
        self._weight = weight.detach()
        if self.is_packed:
            self._weight = torch.ops.onednn.qlinear_prepack(self._weight, None)
            self._unit = self.scale / _LARGEST
            self._zeros = torch.zeros(len(scale), dtype=torch.int32)

    @classmethod
    def quantize(cls, weight: torch.Tensor) -> "Int8Matrix":
        """Quantises a float matrix of shape `(out_features, in_features)`."""
        return cls(*quantized_rows(weight))

    @property
    def weight(self) -> torch.Tensor:
        """Shape `(out_features, in_features)`, int8; a copy if the matrix is packed."""
        return self._weight.to_dense().t().contiguous() if self.is_packed else self._weight

    def dequantize(self) -> torch.Tensor:
        """The matrix in float32."""
        return self.weight * self.scale.unsqueeze(1)

    def to(self, device: torch.device) -> "Int8Matrix":
        """This matrix on a device."""
        if device == self.scale.device:
            return self
        return Int8Matrix(self.weight.to(device), self.scale.to(device))

    def product(self, inputs: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """See `PackedMatrix.product`; the result has the type of `inputs`."""
        product = self._product(inputs.float())
        if bias is not None:
            product.add_(bias)
        return product.to(inputs.dtype)

    def _product(self, inputs: torch.Tensor) -> torch.Tensor:
        if not self.is_packed or not len(inputs):
            return linear(inputs, self.dequantize())
        num_rows = len(inputs)
        multiple = tuning.INT8_ROW_MULTIPLE
        extra_rows = -num_rows % multiple if num_rows > multiple else 0
        if extra_rows:
            inputs = pad(inputs, (0, 0, 0, extra_rows))
        # Above 0 also for a row of zeros, which is divided by it too.
        largest = inputs.abs().amax(dim=1, keepdim=True).clamp_min_(1e-30)
        numbers = torch.add(_OFFSET, inputs / largest, alpha=_LARGEST).to(torch.int32)
        # Shape: (2 * num_rows, in_features)
        halves = torch.cat([numbers, numbers >> 8]).to(torch.uint8)
        # Shape: (num_rows, out_features)
        low, high = _product_of_bytes(halves, self._weight, self._unit, self._zeros).chunk(2)
        return low.add_(high, alpha=256.0).mul_(largest)[:num_rows]

    def __reduce__(self) -> Tuple[Any, ...]:
        # oneDNN's layout can be neither copied nor pickled; a copy packs again.
        return Int8Matrix, (self.weight, self.scale)


def _product_of_bytes(
    inputs: torch.Tensor, packed: torch.Tensor, unit: torch.Tensor, zeros: torch.Tensor
) -> torch.Tensor:
    """The product of uint8 inputs with zero point `_ZERO` and a packed matrix, in float32."""
    return torch.ops.onednn.qlinear_pointwise(
        inputs, 1.0, _ZERO, packed, unit, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


@lru_cache(maxsize=None)
def has_fast_int8_products() -> bool:
    """
    True if products of bytes are fast and exact on this machine. Without VNNI, or where oneDNN is
    told not to use it, two products are added in 16 bits, which can overflow.
    """
    if not (torch.backends.mkldnn.is_available() and torch.cpu._is_vnni_supported()):
        return False
    try:
        packed = torch.ops.onednn.qlinear_prepack(torch.full((16, 64), 127, dtype=torch.int8), None)
        inputs = torch.full((1, 64), 255, dtype=torch.uint8)
        product = _product_of_bytes(inputs, packed, torch.ones(16), torch.zeros(16).int())
    # A PyTorch without these operations, or with others under their names.
    except (AttributeError, RuntimeError):
        return False
    return bool((product == 64.0 * 127 * (255 - _ZERO)).all())


class Int8Linear(torch.nn.Module):
    """
    A `PackedLinear` for inference only, whose weight is an `Int8Matrix`: it takes an eighth of the
    memory of a float32 layer with its packed copy and cannot be trained.

    A state dict holds the integers as `weight` and their scales as `scale`. The state of a
    `PackedLinear` is quantised when it is loaded here; the state of an `Int8Linear` is converted
    to float32 when it is loaded there.

    # Parameters

    matrix : `Int8Matrix`
        The weight.
    bias : `Optional[torch.nn.Parameter]`
        Shape `(out_features,)`.
    """

    def __init__(self, matrix: Int8Matrix, bias: Optional[torch.nn.Parameter]) -> None:
        super().__init__()
        self.bias = bias
        # A buffer, so that a biLM's fingerprint includes it.
        self.register_buffer("scale", matrix.scale)
        self.matrix = matrix

    @classmethod
    def from_linear(cls, layer: torch.nn.Linear) -> "Int8Linear":
        """Quantises the weight of another layer."""
        bias = layer.bias
        if bias is not None:
            bias = torch.nn.Parameter(bias.detach().float(), requires_grad=bias.requires_grad)
        return cls(Int8Matrix.quantize(layer.weight), bias)

    @property
    def weight(self) -> torch.Tensor:
        """
        Shape `(out_features, in_features)`, float32. If the matrix is packed, without values on the
        device `meta` (except under autocast): only `forward` can multiply with it then.
        """
        device = self.scale.device
        if self.matrix.is_packed and not torch.is_autocast_enabled(device.type):
            return torch.empty(self.matrix.shape, device="meta")
        return self.matrix.dequantize()

    @property
    def caches_packed(self) -> bool:
        """Always true: the weight cannot change."""
        return True

    def drop_packed(self) -> None:
        """
        Called before a forward pass with gradients.

        # Raises

        `RuntimeError`
            Always: gradients could not reach the weight.
        """
        raise RuntimeError(
            "Expected weights that can be trained, found int8. Load the biLM with `dtype` float32, "
            "or run it under `torch.no_grad()`."
        )

    def forward(self, inputs: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        """
        See `PackedLinear`.

        # Raises

        `RuntimeError`
            If autograd would track the result.
        """
        bias = self.bias if bias is None else bias
        if tracks_gradients(inputs, bias):
            self.drop_packed()
        return self.matrix.product(inputs, bias)

    def _apply(self, fn: Callable, recurse: bool = True) -> "Int8Linear":
        super()._apply(fn, recurse)
        # The scale moves, but stays float32.
        self._set(self.matrix.to(self.scale.device))
        return self

    def _set(self, matrix: Int8Matrix) -> None:
        self.matrix, self.scale = matrix, matrix.scale

    def _save_to_state_dict(
        self, destination: Dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self.matrix.weight

    def _load_from_state_dict(
        self,
        state_dict: Dict[str, torch.Tensor],
        prefix: str,
        local_metadata: Dict[str, Any],
        strict: bool,
        missing_keys: List[str],
        unexpected_keys: List[str],
        error_msgs: List[str],
    ) -> None:
        name, state = f"{prefix}weight", dict(state_dict)
        weight = state.pop(name, None)
        if weight is None:
            missing_keys.append(name)
        elif f"{prefix}scale" in state:
            # Integers, also if the state dict has been converted to another type.
            weight = weight.to(torch.int8)
        elif weight.is_floating_point():
            weight, state[f"{prefix}scale"] = quantized_rows(weight.to(self.scale.device))
        super()._load_from_state_dict(
            state, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        if weight is not None and weight.shape != self.matrix.shape:
            error_msgs.append(
                f"{name}: expected shape {tuple(self.matrix.shape)}, found {tuple(weight.shape)}."
            )
        elif weight is not None:
            # Copied: the loaded tensor may be memory-mapped, and new addresses tell of new weights.
            weight = weight.to(self.scale.device, copy=True)
            self._set(Int8Matrix(weight, self.scale.clone()))
