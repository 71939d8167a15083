"""The best legal sequence of BIO tags (section 2.3 of He et al. 2017)."""

from typing import Dict, List, Tuple

import torch

# Far below any log-probability, and far enough from float32's end to be summed over a sentence.
IMPOSSIBLE = -1e30


def bio_constraints(labels: Dict[int, str]) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    Scores that forbid what no BIO sequence contains: `I-X` after anything but `B-X` or `I-X`, or
    at the start of a sentence.

    # Parameters

    labels : `Dict[int, str]`
        Every label by its index, as a vocabulary's `get_index_to_token_vocabulary` returns them.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        Scores of starting with a label, shape `(num_labels,)`, and of passing from the label of
        the row to that of the column, shape `(num_labels, num_labels)`: 0 if legal, else -inf.
    """
    tags = [labels[index] for index in range(len(labels))]
    start_scores = torch.zeros(len(tags))
    transition_scores = torch.zeros(len(tags), len(tags))
    for column, tag in enumerate(tags):
        if tag.startswith("I-"):
            start_scores[column] = float("-inf")
            for row, previous in enumerate(tags):
                if previous not in (tag, "B-" + tag[2:]):
                    transition_scores[row, column] = float("-inf")
    return start_scores, transition_scores


def decode(
    log_probabilities: torch.Tensor,
    mask: torch.BoolTensor,
    start_scores: torch.Tensor,
    transition_scores: torch.Tensor,
) -> List[List[int]]:
    """
    Viterbi decoding of a whole batch at once.

    # Parameters

    log_probabilities : `torch.Tensor`
        Shape `(batch_size, num_tokens, num_labels)`.
    mask : `torch.BoolTensor`
        Shape `(batch_size, num_tokens)`, real tokens first in each row.
    start_scores : `torch.Tensor`
        Shape `(num_labels,)`.
    transition_scores : `torch.Tensor`
        Shape `(num_labels, num_labels)`, from the row's label to the column's.

    # Returns

    `List[List[int]]`
        For each sentence, a label for each real token; an empty sentence has none. Among equal
        scores the label of the lowest index wins, from the last token back.
    """
    batch_size, num_tokens, _ = log_probabilities.shape
    lengths = mask.sum(dim=1)
    if batch_size == 0 or num_tokens == 0:
        return [[] for _ in range(batch_size)]
    # An infinite score could outweigh a forbidden transition, a NaN compares with nothing.
    dtype = torch.promote_types(log_probabilities.dtype, torch.float)
    emissions = log_probabilities.detach().to(dtype).nan_to_num(nan=IMPOSSIBLE)
    emissions = emissions.clamp(IMPOSSIBLE, -IMPOSSIBLE).transpose(0, 1)
    # Shape: (num_labels, num_labels), a row now holds all ways into one label
    arrivals = transition_scores.to(emissions).t().contiguous()
    running = torch.arange(num_tokens, device=mask.device).unsqueeze(1) < lengths
    # Shape of each: (batch_size, num_labels)
    scores = [emissions[0] + start_scores.to(emissions)]
    for emission, still in zip(emissions[1:], running[1:].unsqueeze(2)):
        best = (scores[-1].unsqueeze(1) + arrivals).amax(dim=2)
        scores.append(torch.where(still, best + emission, scores[-1]))
    # Shape of each: (batch_size,)
    path = [scores[-1].argmax(dim=1)]
    # Only the labels on the way back need to know where they came from.
    for before, still in zip(scores[-2::-1], running.flip(0)):
        path.append(torch.where(still, (before + arrivals[path[-1]]).argmax(dim=1), path[-1]))
    sequences = torch.stack(path[::-1], dim=1).tolist()
    return [sequence[:length] for sequence, length in zip(sequences, lengths.tolist())]
