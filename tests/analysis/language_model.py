"""The fixture biLM with a random softmax over a few words."""

import torch

from elmo_plugin.bilm.files.softmax import SoftmaxWeights

WORDS = ["<S>", "</S>", "<UNK>", "the", "play", "began", ".", "They", "a", "of"]


def make_softmax(dim: int) -> SoftmaxWeights:
    generator = torch.Generator().manual_seed(5)
    weight = torch.randn(len(WORDS), dim, generator=generator)
    return SoftmaxWeights(weight, torch.randn(len(WORDS), generator=generator), WORDS)
