"""The equations of layers as plain loops over single numbers and rows, in float64."""

import itertools
from typing import Dict, List

import torch

Parameters = Dict[str, torch.Tensor]


def lstm(weights: Parameters, inputs: List[torch.Tensor]) -> List[torch.Tensor]:
    """One direction of `elmo-bilstm`, over one sentence."""
    hidden = cell_state = torch.zeros(weights["recurrent.weight"].size(1), dtype=torch.float64)
    outputs = []
    for vector in inputs:
        gates = weights["input.weight"] @ vector + weights["recurrent.weight"] @ hidden
        i, f, g, o = (gates + weights["bias"]).chunk(4)
        cell_state = f.sigmoid() * cell_state + i.sigmoid() * g.tanh()
        hidden = o.sigmoid() * cell_state.tanh()
        outputs.append(hidden)
    return outputs


def bilstm(weights: Parameters, inputs: List[torch.Tensor]) -> List[torch.Tensor]:
    forward = lstm(below(weights, "forward_layers.0"), inputs)
    backward = lstm(below(weights, "backward_layers.0"), inputs[::-1])[::-1]
    return [torch.cat(pair) for pair in zip(forward, backward)]


def character_cnn(weights: Parameters, ids: List[int]) -> torch.Tensor:
    """The largest of each filter's activations over a word, with zeros before and after it."""
    filters = weights["filters.0.weight"]
    vectors = weights["embedding.weight"][ids]
    width = filters.size(1) // vectors.size(1)
    border = vectors.new_zeros(width // 2, vectors.size(1))
    vectors = torch.cat([border, vectors, border])
    windows = [vectors[first : first + width].flatten() for first in range(len(ids))]
    activations = [filters @ window + weights["filters.0.bias"] for window in windows]
    return torch.stack(activations).clamp(min=0).amax(dim=0)


def logits(weights: Parameters, words: List[torch.Tensor]) -> torch.Tensor:
    """Shape `(num_tokens, num_labels)`, from the vectors of one sentence's words."""
    lower = bilstm(below(weights, "lower_encoder"), words)
    upper = bilstm(below(weights, "upper_encoder"), lower)
    projection = below(weights, "tag_projection")
    return torch.stack([projection["weight"] @ vector + projection["bias"] for vector in upper])


def score(field: Parameters, logits: torch.Tensor, tags: List[int]) -> torch.Tensor:
    """The score of one sequence in the conditional random field."""
    total = field["start_transitions"][tags[0]] + field["end_transitions"][tags[-1]]
    for position, tag in enumerate(tags):
        total = total + logits[position, tag]
    for before, after in zip(tags, tags[1:]):
        total = total + field["transitions"][before, after]
    return total


def log_likelihood(field: Parameters, logits: torch.Tensor, tags: List[int]) -> torch.Tensor:
    """Against every sequence there is."""
    num_tokens, num_labels = logits.shape
    every = itertools.product(range(num_labels), repeat=num_tokens)
    scores = torch.stack([score(field, logits, list(other)) for other in every])
    return score(field, logits, tags) - scores.logsumexp(dim=0)


def below(weights: Parameters, prefix: str) -> Parameters:
    """The parameters of a part, by their names in it."""
    prefix += "."
    return {n[len(prefix) :]: w for n, w in weights.items() if n.startswith(prefix)}
