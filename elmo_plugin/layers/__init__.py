"""Bricks that AllenNLP lacks and that more than one room needs."""

from elmo_plugin.layers.packed_linear import PackedLinear
from elmo_plugin.layers.packed_matrix import PackedMatrix
from elmo_plugin.layers.packing import Packing

__all__ = ["PackedLinear", "PackedMatrix", "Packing"]
