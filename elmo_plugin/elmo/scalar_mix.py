import math
from typing import List, Optional, Union

import torch
from torch.nn.functional import layer_norm as normalise

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.tensors import load_scalars

# AllenNLP's value for float32 and float64.
_EPSILON = 1e-13


class ScalarMix(torch.nn.Module):
    """
    Mixes the layers of a biLM into one vector per token.

    Equation 1 of [Peters et al. (2018)](https://arxiv.org/abs/1802.05365). A softmax over one
    learned score per layer weights the layers; `gamma` scales the mixed vector. The paper's λ is an
    L2 penalty on the scores, the parameter `layer_scores`.

    # Parameters

    num_layers : `int`
        Number of layers to mix. The context-free token layer counts as one.
    layer_norm : `Union[bool, str]`
        Whether to normalise each layer first. `"batch"` normalises over all tokens of the batch, as
        AllenNLP does; the vectors of a sentence then depend on the rest of its batch.
    fixed_weights : `Optional[List[float]]`
        Constant weights, one per layer, instead of the softmax. There are then no parameters, and
        `gamma` is 1.
    """

    fixed_weights: torch.Tensor
    gamma: torch.Tensor

    def __init__(
        self,
        num_layers: int,
        layer_norm: Union[bool, str] = False,
        fixed_weights: Optional[List[float]] = None,
    ) -> None:
        super().__init__()
        if layer_norm not in (True, False, "batch"):
            raise ConfigurationError(
                f'Expected `layer_norm` to be true, false or "batch", found {layer_norm!r}.'
            )
        given = [0.0] * num_layers if fixed_weights is None else fixed_weights
        if len(given) != num_layers or not all(map(math.isfinite, given)):
            raise ConfigurationError(
                f"Expected `fixed_weights` of {num_layers} layers, the token layer included, as "
                f"finite numbers, found {len(given)}: {given}."
            )
        self.num_layers = num_layers
        self.layer_norm = layer_norm
        if fixed_weights is None:
            self.layer_scores = torch.nn.Parameter(torch.zeros(num_layers))
            self.gamma = torch.nn.Parameter(torch.ones(1))
            self.register_load_state_dict_pre_hook(load_scalars)
        else:
            self.gamma = torch.ones((), device="cpu")
            self.register_buffer("fixed_weights", torch.tensor(fixed_weights, dtype=torch.float))

    def weights(self) -> torch.Tensor:
        """The weight of each layer, without `gamma`: shape `(num_layers,)`."""
        if hasattr(self, "fixed_weights"):
            return self.fixed_weights
        return self.layer_scores.softmax(dim=0)

    def forward(self, layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """
        Mixes layers of shape `(num_layers, batch_size, num_tokens, dim)`, token layer first, into
        vectors of shape `(batch_size, num_tokens, dim)`. `mask` is true on real tokens: shape
        `(batch_size, num_tokens)`. Raises `ConfigurationError` if the number of layers is wrong.
        """
        if len(layers) != self.num_layers:
            raise ConfigurationError(
                f"ScalarMix: expected {self.num_layers} layers, found {len(layers)}. Set its "
                "`num_layers` to `n_layers + 1` of the biLM's options: the token layer counts."
            )
        # Shape: (num_layers,)
        weights = self.gamma * self.weights()
        # bfloat16, which the biLM may have, is not precise enough for the normalisation.
        layers = layers.to(weights.dtype)
        if self.layer_norm == "batch":
            layers = _normalise_over_batch(layers, mask)
        elif self.layer_norm:
            layers = normalise(layers, layers.shape[-1:])
        # Shape: (batch_size, num_tokens, dim)
        return torch.einsum("l,lbtd->btd", weights, layers)


def _normalise_over_batch(layers: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Gives each layer zero mean and unit variance over all real tokens and dimensions."""
    # Shape: (1, batch_size, num_tokens, 1)
    mask = mask.unsqueeze(-1).unsqueeze(0)
    count = mask.sum() * layers.size(-1)
    # Shape: (num_layers, 1, 1, 1)
    mean = (layers * mask).sum(dim=(1, 2, 3), keepdim=True) / count
    variance = (((layers - mean) * mask) ** 2).sum(dim=(1, 2, 3), keepdim=True) / count
    return (layers - mean) / torch.sqrt(variance + _EPSILON)
