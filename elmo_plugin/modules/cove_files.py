"""Reads CoVe's encoder from files in the layout of the published one."""

import os
import re
from os import PathLike
from typing import Any, Union

import torch

from elmo_plugin.modules.cove_encoder import CoveEncoder
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path
from elmo_plugin.util.weights import read_state, with_prefix

# A tensor of the second layer, whose name shows the prefix of all names.
_LAST = "weight_ih_l1"


def read_cove_encoder(weight_file: Union[str, PathLike]) -> CoveEncoder:
    """
    Reads an encoder from the state dict of a bidirectional `torch.nn.LSTM` of two layers and any
    widths: the published file, or one of `examples/train_cove.py`. Nothing in it is executed.

    # Parameters

    weight_file : `Union[str, PathLike]`
        A local path or a URL, see `local_path`. The names may have a prefix (`rnn.weight_ih_l0`);
        tensors without that prefix are ignored. A file without a prefix must hold nothing else.

    # Returns

    `CoveEncoder`
        In evaluation mode, its parameters not requiring gradients.

    # Raises

    `ConfigurationError`
        If the file is missing or damaged, or is no such state dict of finite numbers.
    """
    location = os.fspath(weight_file)
    try:
        read = read_state(local_path(weight_file), location)
    except FileNotFoundError:
        raise ConfigurationError(
            f"CoVe's weight file {location} does not exist. Set ELMO_COVE, or `weight_file`, to "
            "the published state dict or to one that examples/train_cove.py has written."
        ) from None
    state = {str(name): value for name, value in read.items()}
    prefixes = [name.removesuffix(_LAST) for name in state if name.endswith(_LAST)]
    tensors = with_prefix(prefixes[0], state) if len(prefixes) == 1 else state
    widths = [_width(tensors.get(f"weight_{part}_l0")) for part in ("ih", "hh")]
    lstm = torch.nn.LSTM(*widths, num_layers=2, bidirectional=True, device="meta")
    try:
        lstm.load_state_dict(tensors, assign=True)
        names = [name for name, value in lstm.named_parameters() if not value.isfinite().all()]
        problem = f"NaN or infinity in {', '.join(names)}." if names else ""
    except RuntimeError as error:
        # The first line only names the class, and one problem is enough.
        problem = str(error).splitlines()[1].strip()
    if problem:
        raise ConfigurationError(
            f"{location}: expected the state dict of one torch.nn.LSTM(input_dim, hidden_dim, "
            f"num_layers=2, bidirectional=True), as published for CoVe. {problem}"
        )
    encoder = CoveEncoder(*widths)
    # weight_ih_l1_reverse of the whole is weight_ih_l0_reverse of layer 1.
    renamed = {re.sub("(.*)_l([01])", r"layers.\2.\1_l0", n): value for n, value in tensors.items()}
    encoder.load_state_dict(renamed)
    return encoder.eval()


def _width(matrix: Any) -> int:
    """Its number of columns; if it is no matrix, some number with which loading it fails."""
    is_matrix = isinstance(matrix, torch.Tensor) and matrix.dim() == 2 and matrix.numel() > 0
    return matrix.size(1) if is_matrix else 1
