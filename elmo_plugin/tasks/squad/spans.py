from typing import Tuple

import torch
from torch.nn.functional import pad


def best_spans(
    start_logits: torch.Tensor, end_logits: torch.Tensor, max_length: int, num_best: int
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    The likeliest answers: spans of a few tokens, each with the probability that it starts where it
    does times that it ends there, over the sum of these for all such spans.

    Memory grows with `batch_size * num_tokens * max_length`: only spans that are short enough are
    looked at.

    # Parameters

    start_logits, end_logits : `torch.Tensor`
        Shape `(batch_size, num_tokens)`, minus infinity at padding.
    max_length : `int`
        Most tokens of an answer.
    num_best : `int`
        How many are wanted.

    # Returns

    spans : `torch.Tensor`
        Shape `(batch_size, num_best, 2)`. First and last token of each, the likeliest first; -1
        where a text has no more spans.
    probabilities : `torch.Tensor`
        Shape `(batch_size, num_best)`; 0 where there is no span.
    """
    # Shape: (batch_size, num_tokens, max_length)
    ends = pad(end_logits, (0, max_length - 1), value=-torch.inf).unfold(1, max_length, 1)
    # Shape: (batch_size, num_tokens * max_length)
    scores = (start_logits.unsqueeze(2) + ends).flatten(1)
    # A model that has diverged finds no span, and the trainer can say that its loss is no number.
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    total = scores.logsumexp(dim=1, keepdim=True)
    scores, places = scores.topk(min(num_best, scores.size(1)), dim=1)
    starts = places.div(max_length, rounding_mode="floor")
    # Shape: (batch_size, num_found, 2)
    spans = torch.stack([starts, starts + places % max_length], dim=2)
    spans = spans.masked_fill(scores.isneginf().unsqueeze(2), -1)
    missing = num_best - scores.size(1)
    return pad(spans, (0, 0, 0, missing), value=-1), pad((scores - total).exp(), (0, missing))
