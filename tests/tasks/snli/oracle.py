"""ESIM's equations for one pair, a token at a time, in float64."""

import torch

from tests.tasks.slow import bilstm


def both_directions(encoder, vectors):
    return bilstm(dict(encoder.named_parameters()), vectors)


def compared(model, own, other):
    outputs = []
    for a in own:
        exponentials = [torch.dot(a, b).exp() for b in other]
        aligned = sum(e * b for e, b in zip(exponentials, other)) / sum(exponentials)
        joined = torch.cat([a, aligned, a - aligned, a * aligned])
        outputs.append((model.projection.weight @ joined + model.projection.bias).clamp(min=0))
    return outputs


def pooled(vectors):
    mean = sum(vectors) / len(vectors)
    return torch.cat([mean, torch.stack(vectors).amax(dim=0)])


def restated(model, texts, at_output):
    """Equations 1 to 17 of Chen et al. (2017) for one pair: `texts` are lists of word vectors."""
    premise, hypothesis = (both_directions(model.encoder, vectors) for vectors in texts)
    premise = [torch.cat([a, elmo]) for a, elmo in zip(premise, at_output[0])]
    hypothesis = [torch.cat([b, elmo]) for b, elmo in zip(hypothesis, at_output[1])]
    comparisons = compared(model, premise, hypothesis), compared(model, hypothesis, premise)
    features = torch.cat(
        [pooled(both_directions(model.composition_encoder, c)) for c in comparisons]
    )
    first, last = model.classifier[1], model.classifier[4]
    hidden = (first.weight @ features + first.bias).clamp(min=0)
    exponentials = (last.weight @ hidden + last.bias).exp()
    return exponentials / exponentials.sum()
