from pathlib import Path
from typing import Any, Dict, List, Optional, Union

import torch

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.files.trained import restore_shipped_bilm
from elmo_plugin.elmo.cache.frozen_layers import FrozenLayers
from elmo_plugin.elmo.cache.layer_cache import LayerCache
from elmo_plugin.elmo.scalar_mix import ScalarMix
from elmo_plugin.environment import setting
from elmo_plugin.util.errors import ConfigurationError


class Elmo(torch.nn.Module):
    """
    ELMo: task-specific scalar mixes of the layers of a biLM (section 3.2 of the paper).

    `forward` computes one vector per token. With `num_mixes` above 1, `representations` computes
    several from one forward pass of the biLM. The names of all biLM parameters contain `bilm`, so
    an optimizer can give them their own learning rate. Raises `ConfigurationError` if a file is
    missing, damaged or does not fit, or a setting is impossible.

    # Parameters

    bilm, options_file, weight_file, stateful, warm_up, dtype, serialization_dir
        See `load_bilm`. A trained archive contains the biLM and does not need its files.
    layers : `Union[str, List[int]]`
        The layers to mix: `all`, `last`, or a list of numbers; 0 is the token layer.
    layer_norm, fixed_weights
        See `ScalarMix`.
    dropout : `float`
        Applied to the mixed vectors.
    trainable : `bool`
        Whether the parameters of the biLM require grad.
    cache : `Union[bool, str]`
        A folder that keeps the layers of every sentence in half precision, so that later epochs and
        runs need not compute them; see `LayerCache`. `true` means the folder in `ELMO_CACHE` (no
        cache if that is empty). Needs the package lmdb. An archive also works without the cache.
    """

    def __init__(
        self,
        options_file: Optional[str] = None,
        weight_file: Optional[str] = None,
        num_mixes: int = 1,
        layers: Union[str, List[int]] = "all",
        layer_norm: Union[bool, str] = False,
        fixed_weights: Optional[List[float]] = None,
        dropout: float = 0.5,
        trainable: bool = False,
        stateful: bool = False,
        warm_up: bool = False,
        dtype: str = "float32",
        cache: Union[bool, str] = False,
        serialization_dir: Optional[str] = None,
        bilm: Optional[str] = None,
    ) -> None:
        super().__init__()
        if cache and (trainable or stateful):
            raise ConfigurationError(
                "ELMo's `cache` needs layers that never change: expected `trainable` and "
                f"`stateful` false, found `trainable` {trainable} and `stateful` {stateful}. Set "
                "`cache` to false."
            )
        if trainable and dtype != "float32":
            raise ConfigurationError(f"A `trainable` biLM needs `dtype` float32, found {dtype}.")
        self.bilm = load_bilm(
            bilm,
            weight_file,
            options_file=options_file,
            stateful=stateful,
            warm_up=warm_up,
            dtype=dtype,
            serialization_dir=serialization_dir,
        ).requires_grad_(trainable)
        folder = setting("ELMO_CACHE") if cache is True else cache
        self._frozen_layers = FrozenLayers(self.bilm, Path(folder) if folder else None)
        self.layers = chosen_layers(layers, self.bilm.num_layers)
        self.mixes = torch.nn.ModuleList(
            ScalarMix(len(self.layers), layer_norm, fixed_weights) for _ in range(num_mixes)
        )
        self.dropout = torch.nn.Dropout(dropout)
        #: The name of each mix in the metrics of an epoch.
        self.mix_names = [f"elmo_{number}" for number in range(num_mixes)]

    def get_output_dim(self) -> int:
        return self.bilm.output_dim

    def forward(self, elmo_tokens: torch.Tensor) -> torch.Tensor:
        """
        Computes the first scalar mix: shape `(batch_size, ..., num_tokens, output_dim)`, 0 at
        padding. `elmo_tokens` are character ids, shape
        `(batch_size, ..., num_tokens, max_characters_per_token)`, from
        `elmo.bilm.characters.batch_ids(sentences)` or the indexers `elmo-characters` (ours) and
        `elmo_characters` (AllenNLP's).
        """
        return self.representations(elmo_tokens)[0]

    def representations(self, elmo_tokens: torch.Tensor) -> List[torch.Tensor]:
        """All scalar mixes from one forward pass of the biLM; see `forward` for the shapes."""
        # Shape: (num_sentences, num_tokens, max_characters_per_token)
        ids = elmo_tokens.flatten(end_dim=-3) if elmo_tokens.dim() > 3 else elmo_tokens
        if any(parameter.requires_grad for parameter in self.bilm.parameters()):
            output = self.bilm(ids)
        elif self.bilm.stateful:
            with torch.no_grad():
                output = self.bilm(ids)
        else:
            output = self._frozen_layers(ids)
        layers = output.layers
        if self.layers != list(range(len(layers))):
            layers = layers[self.layers]
        # The mask has two positions more than tokens. Shape: (num_sentences, num_tokens, 1)
        is_padding = ~output.mask[:, 2:, None]
        mixed = []
        for mix in self.mixes:
            # Shape: (num_sentences, num_tokens, output_dim)
            vectors = mix(layers, output.mask)[:, 1:-1].masked_fill(is_padding, 0.0)
            mixed.append(self.dropout(vectors).view(*elmo_tokens.shape[:-1], vectors.size(-1)))
        return mixed

    def _load_from_state_dict(
        self, state_dict: Dict[str, torch.Tensor], prefix: str, *args: Any
    ) -> None:
        # Packed archives leave out the biLM that comes with the package.
        restore_shipped_bilm(state_dict, "The trained model")
        super()._load_from_state_dict(state_dict, prefix, *args)

    def epoch_metrics(self) -> Dict[str, float]:
        """Layer weights and `gamma` of each mix. `RecoverableTrainer` adds them to the metrics."""
        metrics: Dict[str, float] = {}
        for name, mix in zip(self.mix_names, self.mixes):
            assert isinstance(mix, ScalarMix)
            for layer, weight in zip(self.layers, mix.weights().tolist()):
                metrics[f"{name}_layer_{layer}"] = weight
            metrics[f"{name}_gamma"] = mix.gamma.item()
        return metrics

    def leave_cache(self) -> None:
        """Stops using `cache`. Layers are still rounded, so predictions do not change."""
        self._frozen_layers.leave_cache()

    def before_checkpoint(self) -> None:
        """Writes all computed layers to the cache; `RecoverableTrainer` calls it."""
        # A recovered run must read the same layers: their last bits depend on the batch.
        for cache in LayerCache.opened():
            cache.flush()


def chosen_layers(layers: Union[str, List[int]], num_layers: int) -> List[int]:
    """The numbers of the layers that `layers` names. Raises `ConfigurationError` if it is wrong."""
    known = list(range(num_layers))
    named = {"all": known, "last": known[-1:]}
    numbers = layers if isinstance(layers, list) else named.get(str(layers), [])
    if not numbers or not set(numbers) <= set(known) or len(set(numbers)) != len(numbers):
        raise ConfigurationError(
            'Expected `layers` to be "all", "last", or different numbers from 0 (the token layer) '
            f"to {num_layers - 1}, found {layers!r}."
        )
    return list(numbers)
