"""State dicts with matrices in int8."""

from typing import Dict

import torch

__all__ = ["SCALES", "dequantize", "quantized"]

#: Suffixes of the names of an int8 matrix and of its scales, one per row.
MATRIX, SCALES = ".int8", ".scales"
# Quantising smaller matrices would save almost nothing.
_MIN_SIZE = 4096


def quantized(parameters: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    A state dict whose matrices are quantised to int8, from -127 to 127, with a scale per row: the
    error of a number is at most 1/254 of the largest absolute value in its row.
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
    """Reverts `quantized` in place; matrices become float32."""
    for name in [name for name in parameters if str(name).endswith(MATRIX)]:
        rounded = parameters.pop(name)
        name = name.removesuffix(MATRIX)
        parameters[name] = rounded.float() * parameters.pop(name + SCALES)
