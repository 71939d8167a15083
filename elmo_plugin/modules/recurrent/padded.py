"""Recurrent encoders over batches of padded sentences."""

from typing import Callable

import torch

from elmo_plugin.modules.recurrent.layer import RecurrentLayer
from elmo_plugin.modules.recurrent.packing import Packing
from elmo_plugin.util.errors import ConfigurationError


def encode_padded(
    encode: Callable[[torch.Tensor, Packing], torch.Tensor],
    first: RecurrentLayer,
    inputs: torch.Tensor,
    mask: torch.Tensor,
) -> torch.Tensor:
    """
    # Parameters

    encode : `Callable[[torch.Tensor, Packing], torch.Tensor]`
        The encoder, from shape `(batch_size * num_tokens, input_dim)` to `(batch_size * num_tokens,
        output_dim)`, zero at padding.
    first : `RecurrentLayer`
        A layer that reads the inputs.
    inputs : `torch.Tensor`
        Shape `(batch_size, num_tokens, input_dim)`. Converted to the weights' dtype.
    mask : `torch.Tensor`
        Shape `(batch_size, num_tokens)`, real tokens first.

    # Returns

    `torch.Tensor`
        Shape `(batch_size, num_tokens, output_dim)`, in the dtype of the inputs.

    # Raises

    `ConfigurationError`
        If the inputs are not as wide as the first layer's weights.
    """
    if inputs.size(-1) != first.input.in_features:
        raise ConfigurationError(
            f"The encoder reads inputs {first.input.in_features} wide but received "
            f"{inputs.size(-1)}. Set `input_size` to the width of everything that it reads."
        )
    # Shape: (batch_size * num_tokens, input_dim)
    tokens = inputs.flatten(0, 1).to(first.bias.dtype)
    encoded = encode(tokens, Packing.from_mask(mask))
    return encoded.unflatten(0, mask.shape).to(inputs.dtype)
