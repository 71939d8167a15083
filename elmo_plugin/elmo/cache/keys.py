"""The names of entries of the cache: one for each biLM, and below it one for each sentence."""

import hashlib
from typing import List

import numpy

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint

# To be changed when entries are laid out or computed differently.
_FORMAT = "elmo_plugin layers 2"


def bilm_key(bilm: Bilm) -> str:
    """A hash of the biLM's fingerprint, its initial state, and the layout of an entry."""
    text = f"{_FORMAT} warm_up={bilm.warm_up} {fingerprint(bilm)}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def entry_width(bilm: Bilm) -> int:
    """Numbers per token: the token layer once, then each LSTM layer."""
    return bilm.options.token_dim + (bilm.num_layers - 1) * bilm.output_dim


def sentence_keys(character_ids: numpy.ndarray, lengths: List[int]) -> List[bytes]:
    """
    # Parameters

    character_ids : `numpy.ndarray`
        Shape `(num_sentences, num_tokens, max_characters_per_token)`.
    lengths : `List[int]`
        Number of tokens of each sentence.

    # Returns

    `List[bytes]`
        A hash of each sentence's character ids without padding: equal for words that have the same
        ids, as long words with the same beginning.
    """
    character_ids = character_ids.astype(numpy.int32)
    return [
        hashlib.blake2b(ids[:length].tobytes(), digest_size=16).digest()
        for ids, length in zip(character_ids, lengths)
    ]
