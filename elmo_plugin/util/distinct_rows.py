from typing import Tuple

import torch

__all__ = ["distinct_rows"]


def distinct_rows(rows: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    `torch.unique(rows, dim=0, return_inverse=True)`; on a GPU in another order, and much faster,
    because hashes are sorted instead of rows.

    # Parameters

    rows : `torch.LongTensor`
        Shape `(num_rows, num_columns)`.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        The distinct rows, and the place of each row among them, shape `(num_rows,)`.
    """
    if rows.device.type != "cpu" and len(rows):
        generator = torch.Generator().manual_seed(0)
        # Odd, so that a change of one number always changes the hash.
        factors = torch.randint(-(2**62), 2**62, (rows.size(1),), generator=generator) * 2 + 1
        # Integer arithmetic modulo 2 ** 64.
        hashes, inverse = torch.unique(
            (rows * factors.to(rows.device)).sum(dim=1), return_inverse=True
        )
        places = torch.arange(len(rows), device=rows.device)
        distinct = rows[places.new_empty(len(hashes)).scatter_(0, inverse, places)]
        # Two rows may have the same hash, if only once in many billions.
        if bool((distinct[inverse] == rows).all()):
            return distinct, inverse
    return torch.unique(rows, dim=0, return_inverse=True)
