from functools import partial
from typing import Iterable, Iterator, List, Mapping, Sequence, Union

import numpy
import torch

from elmo_plugin.elmo.token_batches import map_in_batches
from elmo_plugin.modules.cove_files import CoveEncoder

Vector = Union[numpy.ndarray, torch.Tensor]


def embed_with_cove(
    encoder: CoveEncoder,
    word_vectors: Mapping[str, Vector],
    sentences: Iterable[Sequence[str]],
    batch_size: int = 64,
) -> Iterator[torch.Tensor]:
    """
    Computes both layers of CoVe for tokenised sentences; `docs/cove.md` has an example. Yields one
    tensor per sentence, in order, on the CPU: shape `(2, num_tokens, 2 * hidden_dim)`. CoVe is the
    second layer. Batches and errors are as in `embed_sentences`.

    `word_vectors` are the vectors with which the encoder was trained. Raises `ValueError` if their
    shape is not `(input_dim,)`. A word without a vector gets zeros, as in the authors' experiments.
    """
    return map_in_batches(partial(_embed_batch, encoder, word_vectors), sentences, batch_size)


def _embed_batch(
    encoder: CoveEncoder, word_vectors: Mapping[str, Vector], sentences: List[Sequence[str]]
) -> List[torch.Tensor]:
    lengths = [len(words) for words in sentences]
    inputs = torch.zeros(len(sentences), max(lengths), encoder.input_dim)
    for row, words in enumerate(sentences):
        for number, word in enumerate(words):
            if word in word_vectors:
                vector = torch.as_tensor(word_vectors[word])
                if vector.shape != (encoder.input_dim,):
                    raise ValueError(
                        f"Expected word vectors of {encoder.input_dim} numbers, with which the "
                        f"encoder was trained, found shape {tuple(vector.shape)} for {word!r}."
                    )
                inputs[row, number] = vector
    device = next(encoder.parameters()).device
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    with torch.inference_mode():
        layers = encoder(inputs.to(device), mask.to(device)).cpu()
    return [layers[:, row, :length].clone() for row, length in enumerate(lengths)]
