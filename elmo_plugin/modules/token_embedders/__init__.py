"""Token embedders for AllenNLP models."""

from elmo_plugin.modules.token_embedders.character_cnn import CharacterCnn
from elmo_plugin.modules.token_embedders.cove import CoveTokenEmbedder
from elmo_plugin.modules.token_embedders.word_vectors import WordVectors

__all__ = ["CharacterCnn", "CoveTokenEmbedder", "WordVectors"]
