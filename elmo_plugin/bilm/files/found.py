from dataclasses import dataclass
from os import PathLike
from typing import Callable, Dict, Optional, Union

import torch

from elmo_plugin.bilm.options import BilmOptions


@dataclass(frozen=True)
class FoundBilm:
    """A biLM in files: its options, which have been read and checked, and how to read the rest."""

    options: BilmOptions
    #: Reads the state dict of a `Bilm` without its options. All numbers are finite.
    read: Callable[[], Dict[str, torch.Tensor]]
    #: Its name in messages.
    source: str
    #: Where `find_softmax` looks for the softmax; `None` if there is none.
    weight_file: Optional[Union[str, PathLike]] = None
