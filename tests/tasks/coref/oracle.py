"""Lee et al. (2017) in plain loops: one span, one pair, one document at a time."""

from typing import Dict, List, Optional, Sequence, Tuple

import torch

Pair = Tuple[int, int]


def every_span(lengths: Sequence[int], max_width: int) -> List[Pair]:
    spans, first = [], 0
    for length in lengths:
        for start in range(first, first + length):
            for end in range(start, min(start + max_width, first + length)):
                spans.append((start, end))
        first += length
    return spans


def greedy(spans: Sequence[Pair], scores: Sequence[float], number: int) -> List[int]:
    """Positions of the spans that are kept, ascending."""
    kept: List[int] = []
    for candidate in sorted(range(len(spans)), key=lambda which: (-scores[which], which)):
        start, end = spans[candidate]
        crosses = any(
            start < other_start <= end < other_end or other_start < start <= other_end < end
            for other_start, other_end in (spans[other] for other in kept)
        )
        if len(kept) < number and not crosses:
            kept.append(candidate)
    return sorted(kept)


def dense(layer: torch.nn.Linear, vector: torch.Tensor) -> torch.Tensor:
    return layer.weight @ vector + layer.bias


def network(feedforward, vector: torch.Tensor) -> torch.Tensor:
    """The score of a concatenated input, by two hidden layers."""
    hidden = dense(feedforward.input_layer, vector).clamp(min=0)
    hidden = dense(feedforward.hidden_layer, hidden).clamp(min=0)
    return dense(feedforward.output_layer, hidden)[0]


def span_vector(scorer, encoded: torch.Tensor, embedded: torch.Tensor, span: Pair) -> torch.Tensor:
    start, end = span
    weights = [
        dense(scorer.head_attention, encoded[token])[0].exp() for token in range(start, end + 1)
    ]
    head = sum(weight * embedded[start + place] for place, weight in enumerate(weights)) / sum(
        weights
    )
    width = scorer.width_embeddings[end - start]
    return torch.cat([encoded[start], encoded[end], head, width])


def bucket(distance: int) -> int:
    if distance <= 4:
        return distance - 1
    return min(8, distance.bit_length() + 1)


def pair_score(scorer, top_spans, span: int, antecedent: int) -> torch.Tensor:
    """s(i, j)."""
    first, second = top_spans.representations()[[span, antecedent]]
    features = [
        scorer.same_speaker_embeddings[
            int(top_spans.speakers[span] == top_spans.speakers[antecedent])
        ],
        scorer.distance_embeddings[bucket(span - antecedent)],
        scorer.genre_embeddings[top_spans.genre],
    ]
    score = network(scorer.feedforward, torch.cat([first, second, first * second, *features]))
    return top_spans.scores[span] + top_spans.scores[antecedent] + score


def pair_scores(scorer, top_spans) -> List[Dict[int, torch.Tensor]]:
    """For each span the scores of its antecedents."""
    most = scorer.max_antecedents
    return [
        {
            other: pair_score(scorer, top_spans, span, other)
            for other in range(max(0, span - most), span)
        }
        for span in range(len(top_spans.scores))
    ]


def marginal_loss(
    scores: Sequence[Dict[int, torch.Tensor]], clusters: Sequence[Optional[int]]
) -> torch.Tensor:
    """Minus the logarithm of the probability of the gold antecedents, or of none."""
    total = torch.zeros((), dtype=torch.float64)
    for span, of_span in enumerate(scores):
        # First that of having none.
        powers = {None: total.new_ones(())}
        powers.update((other, score.exp()) for other, score in of_span.items())
        cluster = clusters[span]
        same = [other for other in of_span if cluster is not None and clusters[other] == cluster]
        gold = sum(powers[other] for other in same or [None])
        total = total - (gold / sum(powers.values())).log()
    return total


def linked(antecedents: Sequence[Optional[int]]) -> List[List[int]]:
    clusters: List[List[int]] = []
    for span, antecedent in enumerate(antecedents):
        if antecedent is None:
            clusters.append([span])
        else:
            next(cluster for cluster in clusters if antecedent in cluster).append(span)
    return [cluster for cluster in clusters if len(cluster) > 1]
