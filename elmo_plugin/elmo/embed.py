from functools import partial
from typing import Iterable, Iterator, List, Sequence

import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.token_batches import map_in_batches


def embed_sentences(
    bilm: Bilm, sentences: Iterable[Sequence[str]], batch_size: int = 64
) -> Iterator[torch.Tensor]:
    """
    Computes the layers of a biLM for tokenised sentences, in batches of at most `batch_size`.

    Yields one tensor per sentence, in order, on the CPU: shape
    `(num_layers, num_tokens, output_dim)`. A sentence may be empty. At most `16 * batch_size`
    sentences and their layers are in memory. Raises `ValueError` if `batch_size` is below 1, and
    `TypeError` if a sentence is not a list of strings; the message names the sentence.

    # Examples

        from elmo_plugin import embed_sentences, load_bilm
        bilm = load_bilm("options.json", "weights.hdf5")
        for layers in embed_sentences(bilm, [["The", "play", "began"], ["They", "play"]]):
            print(layers.mean(dim=0))
    """
    # A stateful biLM must read the sentences in the given order.
    is_sorted, device_type = not bilm.stateful, bilm.boundary_ids.device.type
    return map_in_batches(
        partial(_embed_batch, bilm), sentences, batch_size, is_sorted, device_type
    )


def _embed_batch(bilm: Bilm, sentences: List[Sequence[str]]) -> List[torch.Tensor]:
    ids = bilm.characters.batch_ids(sentences).to(bilm.boundary_ids.device)
    with torch.inference_mode():
        layers = bilm(ids).layers.cpu()
    return [layers[:, row, 1 : len(words) + 1].clone() for row, words in enumerate(sentences)]
