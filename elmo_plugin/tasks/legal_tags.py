from typing import List, Tuple

import torch
from allennlp.modules.conditional_random_field import allowed_transitions

Scores = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def transition_constraints(labels: List[str], scheme: str) -> Scores:
    """
    Scores that restrict Viterbi decoding to legal sequences of tags: 0 if legal, else -inf.

    # Parameters

    labels : `List[str]`
        The tags by index. Others, such as the vocabulary's padding and unknown label, are never
        legal.
    scheme : `str`
        `BIO` or `BIOUL`.

    # Returns

    `Tuple[torch.Tensor, torch.Tensor, torch.Tensor]`
        Scores of starting with a tag, shape `(num_labels,)`; of the transition from the tag of the
        row to that of the column, shape `(num_labels, num_labels)`; and of ending with a tag, shape
        `(num_labels,)`.
    """
    # AllenNLP's indices of the start and the end of a sequence.
    start, end = len(labels), len(labels) + 1
    scores = torch.full((len(labels) + 2, len(labels) + 2), float("-inf"))
    for row, column in allowed_transitions(scheme, dict(enumerate(labels))):
        scores[row, column] = 0.0
    return scores[start, :start], scores[:start, :start], scores[:start, end]
