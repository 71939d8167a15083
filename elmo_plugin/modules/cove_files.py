import os
import re
from os import PathLike
from typing import Any, Union

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path
from elmo_plugin.util.weights import read_state


class CoveEncoder(torch.nn.Module):
    """
    MT-LSTM, the encoder of CoVe: two bidirectional LSTM layers over the word vectors of a sentence.

    Section 3 of [McCann et al. (2017)](https://arxiv.org/abs/1708.00107). CoVe is the second layer.
    A new encoder has undefined weights, to be loaded; they do not require gradients. `input_dim` is
    the width of the word vectors, `hidden_dim` the width of each direction's hidden states.
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.hidden_dim = hidden_dim
        #: Width of a layer's output, both directions together.
        self.output_dim = 2 * hidden_dim
        # A module per layer, because an LSTM of two layers returns only the second one's states.
        self.layers = torch.nn.ModuleList(
            torch.nn.LSTM(
                width, hidden_dim, batch_first=True, bidirectional=True, device="meta"
            ).to_empty(device="cpu")
            for width in (input_dim, 2 * hidden_dim)
        ).requires_grad_(False)

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        Maps `vectors`, shape `(batch_size, num_tokens, input_dim)`, to both layers, the first one
        first: shape `(2, batch_size, num_tokens, 2 * hidden_dim)`, in each the forward direction
        first, zero at padding. `mask` has real tokens first in each row. Sentences may be empty.
        The authors use zeros for words without a vector.
        """
        layers = vectors.new_zeros(2, *mask.shape, self.output_dim)
        lengths = mask.sum(dim=1)
        # PyTorch does not pack empty sentences.
        rows = lengths.nonzero().squeeze(1)
        if len(rows):
            packed = pack_padded_sequence(
                vectors[rows], lengths[rows].cpu(), batch_first=True, enforce_sorted=False
            )
            for number, lstm in enumerate(self.layers):
                packed, _ = lstm(packed)
                layer, _ = pad_packed_sequence(packed, True, total_length=mask.size(1))
                layers[number, rows] = layer.to(layers)
        return layers


def read_cove_encoder(weight_file: Union[str, PathLike]) -> CoveEncoder:
    """
    Reads an encoder, in evaluation mode, from the state dict of a bidirectional `torch.nn.LSTM` of
    two layers and any widths: the published file, or one of `examples/train_cove.py`. Nothing in it
    is executed.

    `weight_file` is a local path or a URL, see `local_path`. Raises a `ConfigurationError` if the
    file is missing, damaged, or no such state dict of finite numbers.
    """
    location = os.fspath(weight_file)
    try:
        tensors = read_state(local_path(weight_file), location)
    except FileNotFoundError:
        raise ConfigurationError(
            f"CoVe's weight file {location} does not exist. Set ELMO_COVE, or `weight_file`, to "
            "the published state dict or to one that examples/train_cove.py has written."
        ) from None
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
    """The number of columns of a matrix; 1 for anything else, with which loading it fails."""
    is_matrix = isinstance(matrix, torch.Tensor) and matrix.dim() == 2 and matrix.numel() > 0
    return matrix.size(1) if is_matrix else 1
