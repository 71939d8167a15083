"""Bricks that AllenNLP lacks and that more than one room needs."""

from elmo_plugin.layers.bigru import BiGru
from elmo_plugin.layers.bilstm import BiLstm
from elmo_plugin.layers.character_cnn import CharacterCnn
from elmo_plugin.layers.gru_cell import GruCell
from elmo_plugin.layers.highway_cell import HighwayCell
from elmo_plugin.layers.int8_linear import Int8Linear
from elmo_plugin.layers.int8_matrix import Int8Matrix
from elmo_plugin.layers.packed_linear import PackedLinear
from elmo_plugin.layers.packed_matrix import PackedMatrix
from elmo_plugin.layers.packing import Packing
from elmo_plugin.layers.projected_cell import ProjectedCell
from elmo_plugin.layers.recurrence import learns, recur
from elmo_plugin.layers.recurrent_weights import Products, Weights
from elmo_plugin.layers.word_vectors import WordVectors

__all__ = [
    "BiGru",
    "BiLstm",
    "CharacterCnn",
    "GruCell",
    "HighwayCell",
    "Int8Linear",
    "Int8Matrix",
    "PackedLinear",
    "PackedMatrix",
    "Packing",
    "ProjectedCell",
    "Products",
    "Weights",
    "WordVectors",
    "learns",
    "recur",
]
