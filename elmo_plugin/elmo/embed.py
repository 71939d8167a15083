from functools import partial
from typing import Iterable, Iterator, List, Optional, Sequence, Union

import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.corpora.tokenizer import Tokenizer, tokenizer_of
from elmo_plugin.elmo.token_batches import map_in_batches
from elmo_plugin.util.errors import excerpt


def embed_sentences(
    bilm: Bilm,
    sentences: Iterable[Sequence[str]],
    batch_size: int = 64,
    tokenizer: Optional[Union[str, Tokenizer]] = None,
) -> Iterator[torch.Tensor]:
    """
    Computes the layers of a biLM for sentences, in batches of at most `batch_size`. A sentence is a
    list of words or, with a `tokenizer`, a string. `tokenizer` is a code such as `en` or `de` (see
    `tokenizer_of`), or a function from a string to a list of words.

    Yields one tensor per sentence, in order, on the CPU: shape
    `(num_layers, num_tokens, output_dim)`. A sentence may be empty. At most `16 * batch_size`
    sentences and their layers are in memory. Raises `ValueError` if `batch_size` is below 1,
    `TypeError` if a sentence is not a list of strings, or not a string if there is a `tokenizer`,
    and `ConfigurationError` for a language without a tokenizer. The message names the sentence.

    # Examples

        from elmo_plugin import embed_sentences, load_bilm
        bilm = load_bilm("options.json", "weights.hdf5")
        for layers in embed_sentences(bilm, [["The", "play", "began"], ["They", "play"]]):
            print(layers.mean(dim=0))
        for layers in embed_sentences(bilm, ["They play chess."], tokenizer="en"):
            print(layers.shape)  # (num_layers, 4, output_dim)
    """
    if tokenizer is not None:
        split = tokenizer_of(tokenizer) if isinstance(tokenizer, str) else tokenizer
        sentences = _tokenised(sentences, split)
    # A stateful biLM must read the sentences in the given order.
    is_sorted, device_type = not bilm.stateful, bilm.boundary_ids.device.type
    return map_in_batches(
        partial(_embed_batch, bilm), sentences, batch_size, is_sorted, device_type
    )


def _tokenised(sentences: Iterable[object], split: Tokenizer) -> Iterator[Sequence[str]]:
    if isinstance(sentences, str):
        raise TypeError(f"Expected a list of sentences, found the string {excerpt(sentences)!r}.")
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise TypeError(
                f"Expected a string as sentences[{number}], because there is a `tokenizer`, found "
                f"{str(sentence)[:40]!r}. Leave out `tokenizer` for lists of words."
            )
        yield split(sentence)


def _embed_batch(bilm: Bilm, sentences: List[Sequence[str]]) -> List[torch.Tensor]:
    ids = bilm.characters.batch_ids(sentences).to(bilm.boundary_ids.device)
    with torch.inference_mode():
        layers = bilm(ids).layers.cpu()
    return [layers[:, row, 1 : len(words) + 1].clone() for row, words in enumerate(sentences)]
