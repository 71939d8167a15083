import torch

from elmo_plugin.tasks.coref.spans import Spans


def prune_spans(spans: Spans, scores: torch.Tensor, number: int) -> torch.Tensor:
    """
    Selects spans greedily by score, and skips spans that cross a selected span, that is overlap it
    without one of them containing the other (Lee et al. 2017, section 5).

    # Parameters

    spans : `Spans`
        The candidates of one document.
    scores : `torch.Tensor`
        Shape `(num_spans,)`. Ties are broken in favour of the first span.
    number : `int`
        Number of spans to select.

    # Returns

    `torch.Tensor`
        Shape `(num_selected,)`. Indices into `spans`, ascending; fewer than `number` if all other
        spans cross selected ones.
    """
    order = scores.argsort(descending=True, stable=True)
    # Whether a span is selected depends only on spans with higher scores: consider those first.
    num_considered = 2 * number
    while True:
        considered = order[:num_considered]
        chosen = considered[_accepted(spans.select(considered))]
        if len(chosen) >= number or num_considered >= len(order):
            return chosen[:number].sort().values
        num_considered *= 2


def _accepted(spans: Spans) -> torch.Tensor:
    """Which spans, sorted best first, cross no accepted better span: shape `(num_spans,)`."""
    worse, better = _crossing(spans)
    accepted = torch.ones_like(spans.starts, dtype=torch.bool)
    while True:
        # A fixed-point iteration: an entry is final one round after all better spans that cross
        # it are final, and the best span is final at once.
        following = torch.ones_like(accepted)
        following[worse[accepted[better]]] = False
        if torch.equal(following, accepted):
            return accepted
        accepted = following


def _crossing(spans: Spans) -> torch.Tensor:
    """All pairs of crossing spans by rank, shape `(2, num_pairs)`: the worse and the better."""
    starts = spans.starts - spans.starts.min()
    widths = spans.ends - spans.starts
    max_width = int(widths.max()) + 1
    ranks = torch.arange(len(starts), device=starts.device)
    # Shape: (num_starts + max_width, max_width)
    rank_of = ranks.new_full((int(starts.max()) + max_width + 1, max_width), -1)
    rank_of[starts, widths] = ranks
    # A crossing partner starts within the span. Shape: (1, max_width, 1) and (1, 1, max_width)
    numbers = torch.arange(max_width, device=starts.device)
    offsets, partner_widths = numbers.view(1, -1, 1), numbers.view(1, 1, -1)
    # Shape: (num_spans, max_width, max_width)
    partners = rank_of[starts.unsqueeze(1) + numbers]
    widths = widths.view(-1, 1, 1)
    crosses = (offsets > 0) & (offsets <= widths) & (offsets + partner_widths > widths)
    crosses &= partners >= 0
    first = ranks.view(-1, 1, 1).expand_as(partners)[crosses]
    second = partners[crosses]
    return torch.stack([torch.maximum(first, second), torch.minimum(first, second)])
