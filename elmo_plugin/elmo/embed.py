from itertools import islice
from typing import Iterable, Iterator, List, Sequence

import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.token_batches import token_batches

# Sentences of this number of batches are sorted by length, which saves padding.
_BATCHES_AHEAD = 16


def embed_sentences(
    bilm: Bilm, sentences: Iterable[Sequence[str]], batch_size: int = 64
) -> Iterator[torch.Tensor]:
    """
    Computes the layers of a biLM for tokenised sentences. At most `16 * batch_size` sentences and
    their layers are in memory at a time.

    # Parameters

    bilm : `Bilm`
    sentences : `Iterable[Sequence[str]]`
        The words of each sentence; a sentence may be empty.
    batch_size : `int`, optional (default = `64`)
        Maximum number of sentences per batch; see also `token_batches`.

    # Returns

    `Iterator[torch.Tensor]`
        One per sentence, in order: shape `(num_layers, num_tokens, output_dim)`, on the CPU.

    # Raises

    `ValueError`
        If `batch_size` is not above 0.
    `TypeError`
        If a sentence is not a list of strings; the message names the sentence and the word.

    # Examples

        from elmo_plugin import embed_sentences, load_bilm
        bilm = load_bilm("options.json", "weights.hdf5")
        for layers in embed_sentences(bilm, [["The", "play", "began"], ["They", "play"]]):
            print(layers.mean(dim=0))
    """
    if batch_size < 1:
        raise ValueError(f"Expected a `batch_size` above 0, found {batch_size}.")
    remaining = _checked(sentences)
    while window := list(islice(remaining, _BATCHES_AHEAD * batch_size)):
        # A stateful biLM needs the given order.
        order: Sequence[int] = range(len(window))
        if not bilm.stateful:
            order = sorted(order, key=lambda number: len(window[number]))
        embedded: List[torch.Tensor] = [torch.empty(0)] * len(window)
        for batch in token_batches([len(window[number]) for number in order], batch_size):
            numbers = order[batch]
            vectors = _embed_batch(bilm, [window[number] for number in numbers])
            for number, sentence_vectors in zip(numbers, vectors):
                embedded[number] = sentence_vectors
        yield from embedded


def _checked(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    for number, words in enumerate(sentences):
        if isinstance(words, str) or not hasattr(words, "__len__"):
            raise TypeError(
                f"Expected a list of words as sentences[{number}], found {str(words)[:40]!r} "
                f"({type(words).__name__}). Split the text into sentences and words first."
            )
        for place, word in enumerate(words):
            if not isinstance(word, str):
                raise TypeError(
                    f"Expected a string as sentences[{number}][{place}], found {str(word)[:40]} "
                    f"({type(word).__name__})."
                )
        yield words


def _embed_batch(bilm: Bilm, sentences: List[Sequence[str]]) -> List[torch.Tensor]:
    ids = bilm.characters.batch_ids(sentences).to(bilm.boundary_ids.device)
    with torch.inference_mode():
        layers = bilm(ids).layers.cpu()
    return [layers[:, row, 1 : len(words) + 1].clone() for row, words in enumerate(sentences)]
