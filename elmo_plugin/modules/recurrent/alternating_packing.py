from typing import List, NamedTuple

import torch

from elmo_plugin.modules.recurrent.packing import Packing


class AlternatingPacking(NamedTuple):
    """
    Where the real tokens of a batch lie in a stack whose layers alternate direction.

    The steps are those of `Packing`. Read from its last token a sentence fills the same steps, so
    one packing serves both directions; between two layers each sentence is reversed.

    # Parameters

    batch_sizes : `List[int]`
        Number of sentences at each step.
    positions : `torch.Tensor`
        Shape `(num_packed,)`; place of each packed token in the padded batch, flattened.
    reversal : `torch.Tensor`
        Shape `(num_packed,)`; which packed token stands at each place once every sentence has been
        turned around. Its own inverse.
    """

    batch_sizes: List[int]
    positions: torch.Tensor
    reversal: torch.Tensor

    @classmethod
    def of(cls, mask: torch.Tensor) -> "AlternatingPacking":
        """
        # Parameters

        mask : `torch.BoolTensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Rows may be empty.
        """
        assert not bool((mask[:, 1:] & ~mask[:, :-1]).any()), "padding stands before a token"
        packing = Packing.from_lengths(mask.sum(dim=1), mask.size(1))
        places = torch.arange(len(packing.forward_index), device=mask.device)
        place_of = places.new_empty(mask.numel())
        place_of[packing.forward_index] = places
        return cls(
            packing.batch_sizes,
            packing.forward_index,
            place_of[packing.backward_index],
        )
