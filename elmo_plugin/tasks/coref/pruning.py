from typing import Dict, List

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
    starts, ends = spans.starts.tolist(), spans.ends.tolist()
    # The last end of the selected spans that start at a token, the first start of those that end
    # there.
    last_end: Dict[int, int] = {}
    first_start: Dict[int, int] = {}
    chosen: List[int] = []
    for which in scores.argsort(descending=True, stable=True).tolist():
        if len(chosen) == number:
            break
        start, end = starts[which], ends[which]
        later = range(start + 1, end + 1)
        if any(last_end.get(token, end) > end for token in later):
            continue
        if any(first_start.get(token - 1, start) < start for token in later):
            continue
        last_end[start] = max(last_end.get(start, end), end)
        first_start[end] = min(first_start.get(end, start), start)
        chosen.append(which)
    return torch.tensor(sorted(chosen), dtype=torch.long, device=scores.device)
