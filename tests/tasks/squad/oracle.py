"""What the parts of the model compute, in plain Python, one number at a time."""

import math
from typing import List, Tuple

import torch

Vector = List[float]


def dot(left: Vector, right: Vector) -> float:
    return sum(one * other for one, other in zip(left, right, strict=True))


def times(left: Vector, right: Vector) -> Vector:
    return [one * other for one, other in zip(left, right, strict=True)]


def softmax(scores: Vector) -> Vector:
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


def mean(weights: Vector, vectors: List[Vector]) -> Vector:
    return [dot(weights, column) for column in zip(*vectors)]


def layer(linear: torch.nn.Linear, vector: Vector) -> Vector:
    """With a ReLU."""
    rows = zip(linear.weight.tolist(), linear.bias.tolist())
    return [max(0.0, dot(row, vector) + bias) for row, bias in rows]


def bi_attention(module, passage: List[Vector], question: List[Vector]) -> List[Vector]:
    dim = len(passage[0])
    weights = module.similarity._weight_vector.tolist()
    of_passage, of_question, of_both = weights[:dim], weights[dim : 2 * dim], weights[2 * dim :]
    scores = [
        [dot(of_passage, c) + dot(of_question, q) + dot(of_both, times(c, q)) for q in question]
        for c in passage
    ]
    attended_passage = mean(softmax([max(row) for row in scores]), passage)
    merged = []
    for c, row in zip(passage, scores):
        a = mean(softmax(row), question)
        merged.append(layer(module.merge, c + a + times(c, a) + times(c, attended_passage)))
    return merged


def self_attention(module, text: List[Vector]) -> List[Vector]:
    of_query = module.query_projection.weight[0].tolist()
    of_key = module.key_projection.weight[0].tolist()
    of_both, null_logit = module.product_weight.tolist(), module.null_logit.item()
    merged = []
    for number, x in enumerate(text):
        others = [y for other, y in enumerate(text) if other != number]
        scores = [dot(of_query, x) + dot(of_key, y) + dot(of_both, times(x, y)) for y in others]
        weights = softmax([*scores, null_logit])
        a = mean(weights, [*others, [0.0] * len(x)])
        merged.append(layer(module.merge, x + a + times(x, a)))
    return merged


def spans(starts: Vector, ends: Vector, max_length: int) -> List[Tuple[float, int, int]]:
    """Probability, first and last token of all that are short enough, likeliest first."""
    p_start, p_end = softmax(starts), softmax(ends)
    found = [
        (p_start[first] * p_end[last], first, last)
        for first in range(len(starts))
        for last in range(first, min(first + max_length, len(ends)))
    ]
    total = sum(probability for probability, _, _ in found)
    return sorted(
        ((probability / total, first, last) for probability, first, last in found), reverse=True
    )
