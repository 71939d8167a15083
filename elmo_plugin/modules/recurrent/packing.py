from dataclasses import dataclass
from typing import List

import torch

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.tensors import is_exporting


@dataclass(frozen=True)
class Packing:
    """
    The order in which a recurrent layer reads the tokens of a batch.

    Sentences are sorted, longest first, and their tokens laid out step by step: the first token of
    every sentence, then the second of those that have one. No step touches padding. A backward
    layer has the same steps, but starts at each sentence's own last token.

    While a model is exported, the batch keeps its order, and padding follows the tokens of each
    sentence in both directions, so that all steps have as many rows: `batch_sizes` is that number.
    """

    #: Shape `(batch_size,)`. Rows of the batch, longest sentence first.
    order: torch.Tensor
    #: Number of sentences at each step. Sums to the number of real tokens, `num_packed`.
    batch_sizes: List[int]
    #: Shape `(num_packed,)`. The position of each packed token in the batch flattened to
    #: `batch_size * num_tokens`, for a forward and a backward layer.
    forward_index: torch.Tensor
    backward_index: torch.Tensor

    @classmethod
    def from_mask(cls, mask: torch.Tensor) -> "Packing":
        """Raises a `ConfigurationError` if padding stands before a token. Rows may be empty."""
        if not is_exporting() and bool((mask[:, 1:] & ~mask[:, :-1]).any()):
            raise ConfigurationError(
                "Expected a mask with real tokens first in each row, found padding before a token. "
                "Pad sentences at the end."
            )
        return cls.from_lengths(mask.sum(dim=1), mask.size(1))

    @classmethod
    def from_lengths(cls, lengths: torch.Tensor, num_tokens: int) -> "Packing":
        """From the sentences' lengths, shape `(batch_size,)`, 0 allowed, and the padded length."""
        if is_exporting():
            rows = torch.arange(lengths.size(0), device=lengths.device)
            step = torch.arange(num_tokens, device=lengths.device).unsqueeze(1)
            from_front = rows * num_tokens + step
            from_end = rows * num_tokens + torch.where(step < lengths, lengths - 1 - step, step)
            return cls(rows, [lengths.size(0)], from_front.flatten(), from_end.flatten())
        if len(lengths) == 1:
            # The same result for a single sentence with fewer operations.
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

    def reversal(self) -> torch.Tensor:
        """Shape `(num_packed,)`. Indexing packed tokens with it reverses every sentence."""
        # Both indices list the same tokens: the rank of each is its place in the other.
        return self.forward_index.argsort()[self.backward_index.argsort().argsort()]
