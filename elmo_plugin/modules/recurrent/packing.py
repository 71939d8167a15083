from dataclasses import dataclass
from typing import List

import torch


@dataclass(frozen=True)
class Packing:
    """
    The order in which a recurrent layer meets the tokens of a batch.

    Sentences are sorted, longest first, and their tokens laid out step by step: the first token
    of every sentence, then the second of those that have one. No step touches padding. Both
    directions have the same steps; a backward layer starts at each sentence's own last token.

    # Parameters

    order : `torch.Tensor`
        Shape `(batch_size,)`. Rows of the batch, longest sentence first.
    batch_sizes : `List[int]`
        Number of sentences at each step. Sums to the number of real tokens, `num_packed`.
    forward_index, backward_index : `torch.Tensor`
        Shape `(num_packed,)`. Where each packed token stands in the batch flattened to
        `batch_size * num_tokens`, reading from the front and from the end.
    """

    order: torch.Tensor
    batch_sizes: List[int]
    forward_index: torch.Tensor
    backward_index: torch.Tensor

    @classmethod
    def from_lengths(cls, lengths: torch.Tensor, num_tokens: int) -> "Packing":
        """
        # Parameters

        lengths : `torch.Tensor`
            Shape `(batch_size,)`. Number of real tokens per sentence; 0 is allowed.
        num_tokens : `int`
            Padded length of the batch.
        """
        if len(lengths) == 1:
            # What follows, of a single sentence, in fewer operations than its layers have steps.
            positions = torch.arange(int(lengths[0]), device=lengths.device)
            order = torch.zeros_like(lengths)
            return cls(order, [1] * len(positions), positions, positions.flip(0))
        sorted_lengths, order = lengths.sort(descending=True, stable=True)
        # Shape: (num_tokens, 1)
        step = torch.arange(num_tokens, device=lengths.device).unsqueeze(1)
        # Shape: (num_tokens, batch_size)
        is_token = step < sorted_lengths
        from_front = order * num_tokens + step
        from_end = order * num_tokens + sorted_lengths - 1 - step
        return cls(
            order=order,
            batch_sizes=[size for size in is_token.sum(dim=1).tolist() if size],
            forward_index=from_front[is_token],
            backward_index=from_end[is_token],
        )
