"""The bidirectional language model."""

from elmo_plugin.bilm.bilm import Bilm, BilmOutput
from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.io.pretrained import load_bilm, read_options
from elmo_plugin.bilm.io.weight_files import load_weights, save_weights
from elmo_plugin.bilm.options import BilmOptions

__all__ = [
    "Bilm",
    "BilmOptions",
    "BilmOutput",
    "CharacterMap",
    "load_bilm",
    "load_weights",
    "read_options",
    "save_weights",
]
