from typing import List

import torch

# Far below any log-probability, and still finite in float32 when summed over a sentence.
IMPOSSIBLE = -1e30


def decode(
    scores: torch.Tensor,
    mask: torch.Tensor,
    start_scores: torch.Tensor,
    transition_scores: torch.Tensor,
    end_scores: torch.Tensor,
) -> List[List[int]]:
    """
    Finds the best label sequence of each sentence of a batch, under label and transition scores.

    Takes `scores`, shape `(batch_size, num_tokens, num_labels)`, and a `mask` with real tokens
    first in each row. Start and end scores have shape `(num_labels,)`. Transition scores have shape
    `(num_labels, num_labels)`, from the row's label to the column's. In these, -inf forbids a label
    or transition.

    Returns a label for each real token. Among equal scores the lowest label index is chosen, from
    the last token back.
    """
    batch_size, num_tokens, _ = scores.shape
    lengths = mask.sum(dim=1)
    if batch_size == 0 or num_tokens == 0:
        return [[] for _ in range(batch_size)]
    # An infinite score could outweigh a forbidden transition, and NaN cannot be compared.
    dtype = torch.promote_types(scores.dtype, torch.float)
    emissions = scores.detach().to(dtype).nan_to_num(nan=IMPOSSIBLE)
    emissions = emissions.clamp(IMPOSSIBLE, -IMPOSSIBLE).transpose(0, 1)
    # Shape: (num_labels, num_labels), a row now holds all transitions into one label
    arrivals = transition_scores.detach().to(emissions).t().contiguous()
    is_token = torch.arange(num_tokens, device=mask.device).unsqueeze(1) < lengths
    # Shape of each: (batch_size, num_labels)
    totals = [emissions[0] + start_scores.detach().to(emissions)]
    for emission, is_real in zip(emissions[1:], is_token[1:].unsqueeze(2)):
        best = (totals[-1].unsqueeze(1) + arrivals).amax(dim=2)
        totals.append(torch.where(is_real, best + emission, totals[-1]))
    last = totals[-1] + end_scores.detach().to(emissions)
    # Shape of each: (batch_size,)
    path = [last.argmax(dim=1)]
    # Predecessors are computed only for the labels of the best path.
    for before, is_real in zip(totals[-2::-1], is_token.flip(0)):
        best_before = (before + arrivals[path[-1]]).argmax(dim=1)
        path.append(torch.where(is_real, best_before, path[-1]))
    sequences = torch.stack(path[::-1], dim=1).tolist()
    return [sequence[:length] for sequence, length in zip(sequences, lengths.tolist())]
