"""Which sequences of BIO tags are legal (section 2.3 of He et al. 2017)."""

from typing import Dict, Tuple

import torch


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
