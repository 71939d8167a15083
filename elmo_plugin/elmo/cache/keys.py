"""The keys of the cache: of a biLM, and of its sentences."""

import hashlib

import numpy

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint

# Must change with the layout or the computation of entries.
_FORMAT = "elmo_plugin layers 2"


def bilm_key(bilm: Bilm) -> str:
    """A hash of the biLM's fingerprint, its initial state, and the layout of an entry."""
    text = f"{_FORMAT} warm_up={bilm.warm_up} {fingerprint(bilm)}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def entry_width(bilm: Bilm) -> int:
    """Numbers per token: the token layer once, then each LSTM layer."""
    return bilm.options.token_dim + (bilm.num_layers - 1) * bilm.output_dim


def sentence_key(character_ids: numpy.ndarray) -> bytes:
    """A hash of the character ids, shape `(num_tokens, max_characters_per_token)`."""
    return hashlib.blake2b(character_ids.astype(numpy.int32).tobytes(), digest_size=16).digest()
