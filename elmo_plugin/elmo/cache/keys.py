"""What the layers of a sentence are filed under: the biLM's identity and the sentence's words."""

import hashlib
from typing import List

import numpy

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint

# Changes when entries are laid out or computed differently.
_FORMAT = "elmo_plugin layers 2"


def identity(bilm: Bilm) -> str:
    """
    The name of a biLM's entries: its fingerprint, what a sentence starts from, and the layout of
    an entry. Where its files are does not matter.
    """
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
