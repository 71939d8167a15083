"""State dicts with matrices in int8."""

from typing import Dict

import torch

#: Suffixes of the names of an int8 matrix and of its scales, one per row.
MATRIX, SCALES = ".int8", ".scales"
# Quantising smaller matrices would save almost nothing.
_MIN_SIZE = 4096


def quantized(parameters: Dict[str, torch.Tensor]) -> Dict[str, torch.Tensor]:
    """
    A state dict whose matrices are in int8, from -127 to 127, with a scale per row. The error of a
    number is at most 1/254 of the largest absolute value in its row.
    """
    found: Dict[str, torch.Tensor] = {}
    for name, value in parameters.items():
        if not value.is_floating_point() or value.dim() != 2 or value.numel() < _MIN_SIZE:
            found[name] = value
            continue
        matrix = value.detach().float().contiguous()
        # Above 0 even for a row of zeros, because each row is divided by its scale.
        smallest = torch.finfo(torch.float32).tiny * 127
        scales = matrix.abs().amax(dim=1, keepdim=True).clamp_min(smallest) / 127
        found[name + MATRIX] = (matrix / scales).round().to(torch.int8)
        found[name + SCALES] = scales
    return found


def dequantize(parameters: Dict[str, torch.Tensor]) -> None:
    """Reverts `quantized` in place; matrices become float32, other entries stay as they are."""
    names = [name.removesuffix(SCALES) for name in parameters if name.endswith(SCALES)]
    for name in names:
        if name + MATRIX in parameters:
            scales = parameters.pop(name + SCALES)
            parameters[name] = parameters.pop(name + MATRIX).float() * scales
