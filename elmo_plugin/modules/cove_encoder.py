from itertools import product
from typing import Any, Dict

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class CoveEncoder(torch.nn.Module):
    """
    The encoder of CoVe: two bidirectional LSTM layers over the word vectors of a sentence.

    MT-LSTM, section 3 of [McCann et al. (2017)](https://arxiv.org/abs/1708.00107). Its second layer
    is CoVe. `read_cove_encoder` reads one from a file. A new one has undefined weights, to be
    loaded; they do not require gradients.

    # Parameters

    input_dim : `int`
        Width of the word vectors.
    hidden_dim : `int`, optional (default = `300`)
        Width of the hidden states of each direction.
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        super().__init__()
        self.input_dim = input_dim
        self.hidden_dim = hidden_dim
        # A module per layer, because an LSTM of two layers returns only the second one's states.
        self.layers = torch.nn.ModuleList(
            torch.nn.LSTM(
                width, hidden_dim, batch_first=True, bidirectional=True, device="meta"
            ).to_empty(device="cpu")
            for width in (input_dim, 2 * hidden_dim)
        ).requires_grad_(False)

    @property
    def output_dim(self) -> int:
        """Width of a layer's output, both directions together."""
        return 2 * self.hidden_dim

    def forward(self, vectors: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        vectors : `torch.Tensor`
            Shape `(batch_size, num_tokens, input_dim)`. The authors use zeros for words without a
            vector.
        mask : `torch.Tensor`
            Shape `(batch_size, num_tokens)`, real tokens first. Sentences may be empty.

        # Returns

        `torch.Tensor`
            Shape `(2, batch_size, num_tokens, 2 * hidden_dim)`. The layers, the first one first; in
            each the forward direction first, zero at padding.
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

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        # Archives of earlier versions have a layer per direction, with one bias.
        directions = (("forward", "_l0"), ("backward", "_l0_reverse"))
        for number, (direction, suffix) in product((0, 1), directions):
            old, new = f"{prefix}{direction}_layers.{number}.", f"{prefix}layers.{number}."
            if f"{old}bias" in state_dict:
                bias = state_dict.pop(f"{old}bias")
                state_dict[f"{new}bias_ih{suffix}"] = bias
                state_dict[f"{new}bias_hh{suffix}"] = torch.zeros_like(bias)
                state_dict[f"{new}weight_ih{suffix}"] = state_dict.pop(f"{old}input.weight")
                state_dict[f"{new}weight_hh{suffix}"] = state_dict.pop(f"{old}recurrent.weight")
        super()._load_from_state_dict(state_dict, prefix, *args)
