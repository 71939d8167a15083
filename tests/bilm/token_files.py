"""The files of a biLM over token embeddings."""

from pathlib import Path
from typing import Any, Dict

import torch

from elmo_plugin.bilm import Bilm, BilmOptions
from elmo_plugin.bilm.files.folders import save_bilm
from tests.bilm.trained import WORDS


def save_token_bilm(folder: Path, options: Dict[str, Any]) -> Path:
    """Writes options, random weights and the vocabulary; of the options, all but `char_cnn`."""
    source = {name: value for name, value in options.items() if name != "char_cnn"}
    bilm = Bilm(BilmOptions.from_dict(source).with_words(WORDS))
    with torch.no_grad():
        for parameter in bilm.parameters():
            parameter.normal_(0.0, parameter.size(-1) ** -0.5)
    save_bilm(bilm, folder)
    return folder
