"""ELMo: the one seam between the language model and the tasks."""

from elmo_plugin.elmo.cache.prefetch import PrefetchingDataLoader
from elmo_plugin.elmo.elmo import Elmo
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.placement import ElmoPlacement, PlacedText, Placement
from elmo_plugin.elmo.scalar_mix import ScalarMix

__all__ = [
    "Elmo",
    "ElmoPlacement",
    "PlacedText",
    "Placement",
    "PrefetchingDataLoader",
    "ScalarMix",
    "embed_sentences",
]
