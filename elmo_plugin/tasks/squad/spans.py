from typing import Tuple

import torch
from torch.nn.functional import pad


def best_spans(
    start_logits: torch.Tensor, end_logits: torch.Tensor, max_length: int, num_best: int
) -> Tuple[torch.Tensor, torch.Tensor]:
    """
    The most probable answer spans of at most `max_length` tokens. The probability of a span is the
    product of its start and end probabilities, normalised over all such spans.

    Memory grows with `batch_size * num_tokens * max_length`.

    # Parameters

    start_logits, end_logits : `torch.Tensor`
        Shape `(batch_size, num_tokens)`, minus infinity at padding.
    max_length : `int`
        Largest number of tokens of an answer.
    num_best : `int`
        Number of spans to return.

    # Returns

    spans : `torch.Tensor`
        Shape `(batch_size, num_best, 2)`. First and last token of each span, the most probable span
        first; -1 if a text has fewer spans.
    probabilities : `torch.Tensor`
        Shape `(batch_size, num_best)`; 0 for missing spans, NaN if the model has diverged.
    """
    # Shape: (batch_size, num_tokens, max_length)
    ends = pad(end_logits, (0, max_length - 1), value=-torch.inf).unfold(1, max_length, 1)
    # Shape: (batch_size, num_tokens * max_length)
    scores = (start_logits.unsqueeze(2) + ends).flatten(1)
    # If the model has diverged, no span is found, and the trainer reports that its loss is NaN.
    scores = scores.masked_fill(scores.isnan(), -torch.inf)
    total = scores.logsumexp(dim=1, keepdim=True)
    scores, indices = scores.topk(min(num_best, scores.size(1)), dim=1)
    starts = indices.div(max_length, rounding_mode="floor")
    # Shape: (batch_size, num_found, 2)
    spans = torch.stack([starts, starts + indices % max_length], dim=2)
    spans = spans.masked_fill(scores.isneginf().unsqueeze(2), -1)
    missing = num_best - scores.size(1)
    return pad(spans, (0, 0, 0, missing), value=-1), pad((scores - total).exp(), (0, missing))
