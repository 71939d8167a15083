"""Graphs of biLMs for other runtimes compute what we compute."""

import numpy
import onnxruntime
import pytest
import torch

from elmo_plugin import Elmo, load_bilm
from elmo_plugin.commands.main import main
from elmo_plugin.elmo import exported
from elmo_plugin.elmo.exported import export_model
from elmo_plugin.modules.recurrent.cells import GruCell, HighwayLstmCell
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.modules.seq2seq_encoders import BidirectionalEncoder
from elmo_plugin.util.errors import ConfigurationError

SENTENCES = [
    "The village was mentioned by travellers of the nineteenth century .".split(),
    ["Chess"],
    [],
    ["A", "naïve", "owl", ":", "🦉", "x" * 60],
]
# One sentence, one word, none; and sentences without each other.
BATCHES = [SENTENCES, SENTENCES[::-1], SENTENCES[:1], [["Chess"]], [[]]]


def runners(model, folder, outputs):
    """A function of ids for each format."""
    ids = model.characters.batch_ids(SENTENCES) if hasattr(model, "characters") else None
    ids = model.bilm.characters.batch_ids(SENTENCES) if ids is None else ids
    for suffix in exported.SUFFIXES:
        export_model(model, folder / f"model{suffix}", {"character_ids": ids}, outputs)
    return readers(folder / "model.onnx", folder / "model.pt2")


def readers(onnx, pt2):
    session = onnxruntime.InferenceSession(onnx)
    module = torch.export.load(pt2).module()

    def run(ids):
        found = session.run(None, {"character_ids": ids.numpy()})
        return [torch.from_numpy(each) for each in found]

    return [run, module]
