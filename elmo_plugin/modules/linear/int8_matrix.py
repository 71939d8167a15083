from functools import lru_cache
from typing import Any, Optional, Tuple

import torch
from torch.nn.functional import linear, pad

__all__ = ["Int8Matrix"]

# Inputs become whole numbers up to this, for their high byte to fit: 127 * 256.
_LARGEST = 32512.0
# Where both bytes of such a number have their zero; so none is negative. A half more makes cutting
# off round.
_ZERO = 128
_OFFSET = torch.tensor(_ZERO * 257 + 0.5)
# oneDNN prepares code for every new number of rows; see `PackedMatrix`.
_ROWS = 64


class Int8Matrix:
    """
    A matrix of whole numbers from -127 to 127, one byte each, with one scale per row, that many
    products in a row have on their right.

    A product of few rows takes as long as reading the matrix, and this one is a quarter of one in
    float32. On CPUs with AVX-512 VNNI the product is of whole numbers too. Inputs are rounded to
    16 bits, each row by its own largest value, so that rows do not depend on each other and only
    the matrix is coarse; their low and high bytes are rows of one product. Elsewhere the matrix
    is widened for every product: as small, but slow.

    # Parameters

    weight : `torch.Tensor`
        Shape `(out_features, in_features)`, int8. Where products are of whole numbers it is laid
        out anew and not kept.
    scale : `torch.Tensor`
        Shape `(out_features,)`, float32. What one unit of a row is worth.
    """

    def __init__(self, weight: torch.Tensor, scale: torch.Tensor) -> None:
        self.shape = weight.shape
        self.scale = scale.detach()
        self.is_packed = weight.device.type == "cpu" and can_multiply_bytes()
        self._weight = weight.detach()
        if self.is_packed:
            self._weight = torch.ops.onednn.qlinear_prepack(self._weight, None)
            self._unit = self.scale / _LARGEST
            self._zeros = torch.zeros(len(scale), dtype=torch.int32)

    @classmethod
    def rounded(cls, weight: torch.Tensor) -> "Int8Matrix":
        """The matrix nearest to one of real numbers, shape `(out_features, in_features)`."""
        weight = weight.detach().float()
        # A row of zeros needs a scale too.
        largest = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny * 127)
        scale = largest / 127
        return cls((weight / scale.unsqueeze(1)).round().to(torch.int8), scale)

    @property
    def weight(self) -> torch.Tensor:
        """Shape `(out_features, in_features)`, int8; a copy where it is laid out otherwise."""
        return self._weight.to_dense().t().contiguous() if self.is_packed else self._weight

    def widened(self) -> torch.Tensor:
        """The real numbers that the matrix stands for, float32."""
        return self.weight * self.scale.unsqueeze(1)

    def to(self, device: torch.device) -> "Int8Matrix":
        """This matrix on a device."""
        if device == self.scale.device:
            return self
        return Int8Matrix(self.weight.to(device), self.scale.to(device))

    def product(
        self,
        inputs: torch.Tensor,
        bias: Optional[torch.Tensor] = None,
        plus: Optional[torch.Tensor] = None,
    ) -> torch.Tensor:
        """The same as `PackedMatrix.product`, of the type of `inputs`."""
        product = self._product(inputs.float())
        for addend in (bias, plus):
            if addend is not None:
                product.add_(addend)
        return product.to(inputs.dtype)

    def _product(self, inputs: torch.Tensor) -> torch.Tensor:
        if not self.is_packed or not len(inputs):
            return linear(inputs, self.widened())
        num_rows = len(inputs)
        extra_rows = -num_rows % _ROWS if num_rows > _ROWS else 0
        if extra_rows:
            inputs = pad(inputs, (0, 0, 0, extra_rows))
        # A row of zeros has no largest value.
        largest = inputs.abs().amax(dim=1, keepdim=True).clamp_min_(1e-30)
        numbers = torch.add(_OFFSET, inputs / largest, alpha=_LARGEST).to(torch.int32)
        # Shape: (2 * num_rows, in_features)
        halves = torch.cat([numbers, numbers >> 8]).to(torch.uint8)
        # Shape: (num_rows, out_features)
        low, high = _product_of_bytes(halves, self._weight, self._unit, self._zeros).chunk(2)
        return low.add_(high, alpha=256.0).mul_(largest)[:num_rows]

    def __reduce__(self) -> Tuple[Any, ...]:
        # oneDNN's layout can be neither copied nor pickled; a copy makes its own.
        return Int8Matrix, (self.weight, self.scale)


def _product_of_bytes(
    inputs: torch.Tensor, packed: torch.Tensor, unit: torch.Tensor, zeros: torch.Tensor
) -> torch.Tensor:
    """Of inputs above `_ZERO`, uint8, and of a matrix as oneDNN lays it out; float32."""
    return torch.ops.onednn.qlinear_pointwise(
        inputs, 1.0, _ZERO, packed, unit, zeros, None, 1.0, 0, torch.float32, "none", [], ""
    )


@lru_cache(maxsize=None)
def can_multiply_bytes() -> bool:
    """
    Whether products of bytes are fast and right here. Without VNNI, or where oneDNN is told not to
    use it, two products are added up in 16 bits, which are too few.
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
