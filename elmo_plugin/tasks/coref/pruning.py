import torch

from elmo_plugin.tasks.coref.spans import Spans


def best_spans(spans: Spans, scores: torch.Tensor, number: int) -> torch.Tensor:
    """
    Chooses spans greedily, the best first, and refuses one that crosses a chosen one: that begins
    within it and ends behind it, or the other way round. Nested ones are welcome (Lee et al. 2017,
    section 5).

    # Parameters

    spans : `Spans`
        Of one document.
    scores : `torch.Tensor`
        Shape `(num_spans,)`. Of equal ones, the first span is the better.
    number : `int`
        How many to choose.

    # Returns

    `torch.Tensor`
        Shape `(num_chosen,)`. Positions among `spans`, ascending; fewer than `number` where no more
        may be chosen.
    """
    order = scores.argsort(descending=True, stable=True)
    # Whether a span is refused depends on better ones alone, so the worst need no look at first.
    num_considered = 2 * number
    while True:
        considered = order[:num_considered]
        chosen = considered[_accepted(spans.chosen(considered))]
        if len(chosen) >= number or num_considered >= len(order):
            return chosen[:number].sort().values
        num_considered *= 2


def _accepted(spans: Spans) -> torch.Tensor:
    """Which of some spans, best first, cross no accepted better one: shape `(num_spans,)`."""
    worse, better = _crossing(spans)
    accepted = torch.ones_like(spans.starts, dtype=torch.bool)
    while True:
        # Right for the best span at once, and after each round for all spans that only such as
        # are right by then can refuse.
        following = torch.ones_like(accepted)
        following[worse[accepted[better]]] = False
        if torch.equal(following, accepted):
            return accepted
        accepted = following


def _crossing(spans: Spans) -> torch.Tensor:
    """The ranks of all spans that cross, shape `(2, num_crossings)`: the worse, the better."""
    starts = spans.starts - spans.starts.min()
    widths = spans.ends - spans.starts
    max_width = int(widths.max()) + 1
    ranks = torch.arange(len(starts), device=starts.device)
    # Shape: (num_starts + max_width, max_width)
    rank_of = ranks.new_full((int(starts.max()) + max_width + 1, max_width), -1)
    rank_of[starts, widths] = ranks
    # Partners begin within the span. Shape: (1, max_width, 1) and (1, 1, max_width)
    places = torch.arange(max_width, device=starts.device)
    offsets, partner_widths = places.view(1, -1, 1), places.view(1, 1, -1)
    # Shape: (num_spans, max_width, max_width)
    partners = rank_of[starts.unsqueeze(1) + places]
    widths = widths.view(-1, 1, 1)
    crosses = (offsets > 0) & (offsets <= widths) & (offsets + partner_widths > widths)
    crosses &= partners >= 0
    first = ranks.view(-1, 1, 1).expand_as(partners)[crosses]
    second = partners[crosses]
    return torch.stack([torch.maximum(first, second), torch.minimum(first, second)])
