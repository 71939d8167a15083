"""The bidirectional language model."""

from elmo_plugin.bilm.bilm import Bilm, BilmOutput, fingerprint, weights_type
from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.files import folders
from elmo_plugin.bilm.files.layout import save_weights
from elmo_plugin.bilm.files.load import load_bilm, load_weights, read_options
from elmo_plugin.bilm.options import BilmOptions

__all__ = [
    "Bilm",
    "BilmOptions",
    "BilmOutput",
    "CharacterMap",
    "fingerprint",
    "load_bilm",
    "load_weights",
    "read_options",
    "save_weights",
    "weights_type",
]

# Files import the model and never the reverse, so its methods for files are added here.
Bilm.from_pretrained = classmethod(folders.from_pretrained)  # type: ignore[assignment]
Bilm.save_pretrained = folders.save_pretrained
