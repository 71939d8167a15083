"""What the layers of a sentence are filed under: the biLM's identity and the sentence's words."""

import hashlib
from typing import List

import numpy
import torch

from elmo_plugin.bilm import Bilm

# Changes when entries are laid out or computed differently.
_FORMAT = "elmo_plugin layers 1"


def identity(bilm: Bilm) -> str:
    """
    What tells one biLM's layers from another's: a hash over its options, its weights with their
    types, and what a sentence starts from. Where the files lie does not matter.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{_FORMAT} {bilm.options!r} warm_up={bilm.warm_up}".encode())
    # What the ids of token embeddings stand for.
    digest.update(" ".join(bilm.options.words or ()).encode())
    for name, value in sorted(bilm.state_dict().items()):
        # It names the file that the options came from.
        if name != "options_json":
            digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def entry_width(bilm: Bilm) -> int:
    """Numbers per token: the token layer once, then each LSTM layer."""
    return bilm.options.token_dim + (bilm.num_layers - 1) * bilm.output_dim


def sentence_keys(character_ids: numpy.ndarray, lengths: List[int]) -> List[bytes]:
    """
    # Parameters

    character_ids : `numpy.ndarray`
        Shape `(num_sentences, num_tokens, max_characters_per_token)`.
    lengths : `List[int]`
        Tokens of each sentence.

    # Returns

    `List[bytes]`
        A hash for each sentence: equal for equal words, wherever they stand in a batch. Words that
        the biLM cannot tell apart, being the same as far as it reads, are equal words.
    """
    character_ids = character_ids.astype(numpy.int32)
    return [
        hashlib.blake2b(ids[:length].tobytes(), digest_size=16).digest()
        for ids, length in zip(character_ids, lengths)
    ]
