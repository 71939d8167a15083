"""ELMo: scalar mixes of the layers of a biLM."""

from elmo_plugin.elmo.elmo import Elmo
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.elmo.scalar_mix import ScalarMix

__all__ = ["Elmo", "ScalarMix", "embed_sentences"]
