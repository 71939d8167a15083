"""State dicts with matrices in 8 bits."""

from typing import Dict

import torch

__all__ = ["SCALES", "dequantize", "quantized"]

#: Suffixes of the names of a matrix in 8 bits and of its factors, one per row.
MATRIX, SCALES = ".int8", ".scales"
# Smaller matrices would save nothing.
_MIN_SIZE = 4096


def quantized(parameters: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    A state dict whose matrices are rounded to 255 values per row, the largest of which is that of
    the row's largest number: the error is at most 1/254 of it.
    """
    found: Dict[str, torch.Tensor] = {}
    for name, value in parameters.items():
        if not value.is_floating_point() or value.dim() != 2 or value.numel() < _MIN_SIZE:
            found[name] = value
            continue
        scales = value.float().abs().amax(dim=1, keepdim=True) / 127.0
        rounded = (value.float() / scales.clamp(min=1e-30)).round()
        found[name + MATRIX] = rounded.to(torch.int8)
        found[name + SCALES] = scales
    return found


def dequantize(parameters: Dict[str, torch.Tensor]) -> None:
    """Puts the matrices, in float32, in place of what `quantized` has made of them."""
    for name in [name for name in parameters if str(name).endswith(MATRIX)]:
        rounded = parameters.pop(name)
        name = name.removesuffix(MATRIX)
        parameters[name] = rounded.float() * parameters.pop(name + SCALES)
