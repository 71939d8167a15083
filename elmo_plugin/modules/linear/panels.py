"""The order in which compiled code reads a weight, see `kernels/products.h`."""

from typing import Optional

import torch
from torch.nn.functional import pad

from elmo_plugin.modules.kernels.compiled import compiled_kernels

# Vectors per panel if the rows of the weight are not those of gates.
_PLAIN = 4


def panels(weight: torch.Tensor, num_gates: Optional[int] = None) -> torch.Tensor:
    """
    A copy of a weight in panels, for compiled code.

    # Parameters

    weight : `torch.Tensor`
        Shape `(out_features, in_features)`.
    num_gates : `Optional[int]`
        The number of gates, if the rows are those of one gate after the other; each panel then has
        the same hidden units of all gates.

    # Returns

    `torch.Tensor`
        Shape `(num_panels, in_features, num_gates or 4, width)`, with zeros for missing columns. In
        bfloat16, `(num_panels, in_features / 2, num_gates or 4, 2 * width)`: pairs of inputs.
    """
    kernels = compiled_kernels()
    assert kernels is not None
    width = kernels.panel_width()
    weight, dtype = weight.detach(), weight.dtype
    if dtype == torch.bfloat16:
        # Two inputs as one number.
        weight = pad(weight, (0, weight.size(1) % 2)).contiguous().view(torch.int32)
    if num_gates is None:
        # Shape: (num_panels, 4, width, in_features)
        parts = pad(weight, (0, 0, 0, -len(weight) % (_PLAIN * width)))
        parts = parts.unflatten(0, (-1, _PLAIN, width))
        return parts.permute(0, 3, 1, 2).contiguous().view(dtype)
    # Shape: (num_gates, hidden_dim, in_features)
    gates = weight.unflatten(0, (num_gates, -1))
    # Shape: (num_gates, num_panels, width, in_features)
    parts = pad(gates, (0, 0, 0, -gates.size(1) % width)).unflatten(1, (-1, width))
    return parts.permute(1, 3, 0, 2).contiguous().view(dtype)
