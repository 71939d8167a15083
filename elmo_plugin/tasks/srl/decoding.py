"""Constraints on sequences of BIO tags (section 2.3 of He et al. 2017)."""

from typing import Dict, Tuple

import torch


def bio_constraints(labels: Dict[int, str]) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    Viterbi scores that allow `I-X` only directly after `B-X` or `I-X`.

    # Parameters

    labels : `Dict[int, str]`
        Every label by its index, as `Vocabulary.get_index_to_token_vocabulary` returns them.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor]`
        Start scores of shape `(num_labels,)`, and transition scores (from row to column) of shape
        `(num_labels, num_labels)`: 0 if legal, else -inf.
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
