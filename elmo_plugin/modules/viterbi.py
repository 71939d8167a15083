"""Viterbi decoding: the best sequence of labels under label and transition scores."""

from typing import List, Optional

import torch

# Far below any log-probability, and far enough from float32's end to be summed over a sentence.
IMPOSSIBLE = -1e30


def decode(
    scores: torch.Tensor,
    mask: torch.Tensor,
    start_scores: torch.Tensor,
    transition_scores: torch.Tensor,
    end_scores: Optional[torch.Tensor] = None,
) -> List[List[int]]:
    """
    Viterbi decoding of a whole batch at once.

    # Parameters

    scores : `torch.Tensor`
        Shape `(batch_size, num_tokens, num_labels)`. Of each label at each token.
    mask : `torch.Tensor`
        Shape `(batch_size, num_tokens)`, real tokens first in each row.
    start_scores : `torch.Tensor`
        Shape `(num_labels,)`. Of a label at a sentence's first token.
    transition_scores : `torch.Tensor`
        Shape `(num_labels, num_labels)`, from the row's label to the column's.
    end_scores : `Optional[torch.Tensor]`
        Shape `(num_labels,)`. Of a label at a sentence's last token; zeros when not given. As in
        the other two, -inf forbids.

    # Returns

    `List[List[int]]`
        For each sentence, a label for each real token; an empty sentence has none. Among equal
        scores the label of the lowest index wins, from the last token back.
    """
    batch_size, num_tokens, _ = scores.shape
    lengths = mask.sum(dim=1)
    if batch_size == 0 or num_tokens == 0:
        return [[] for _ in range(batch_size)]
    # An infinite score could outweigh a forbidden transition, a NaN compares with nothing.
    dtype = torch.promote_types(scores.dtype, torch.float)
    emissions = scores.detach().to(dtype).nan_to_num(nan=IMPOSSIBLE)
    emissions = emissions.clamp(IMPOSSIBLE, -IMPOSSIBLE).transpose(0, 1)
    # Shape: (num_labels, num_labels), a row now holds all transitions into one label
    arrivals = transition_scores.detach().to(emissions).t().contiguous()
    running = torch.arange(num_tokens, device=mask.device).unsqueeze(1) < lengths
    # Shape of each: (batch_size, num_labels)
    totals = [emissions[0] + start_scores.detach().to(emissions)]
    for emission, still in zip(emissions[1:], running[1:].unsqueeze(2)):
        best = (totals[-1].unsqueeze(1) + arrivals).amax(dim=2)
        totals.append(torch.where(still, best + emission, totals[-1]))
    last = totals[-1] if end_scores is None else totals[-1] + end_scores.detach().to(emissions)
    # Shape of each: (batch_size,)
    path = [last.argmax(dim=1)]
    # Predecessors are computed only for the labels of the best path.
    for before, still in zip(totals[-2::-1], running.flip(0)):
        path.append(torch.where(still, (before + arrivals[path[-1]]).argmax(dim=1), path[-1]))
    sequences = torch.stack(path[::-1], dim=1).tolist()
    return [sequence[:length] for sequence, length in zip(sequences, lengths.tolist())]
