import os
from pathlib import Path
from typing import List, Optional, Union

import torch
from allennlp.modules import TokenEmbedder
from overrides import overrides

from elmo_plugin.bilm import load_bilm
from elmo_plugin.elmo.cache.frozen_layers import FrozenLayers
from elmo_plugin.elmo.scalar_mix import ScalarMix
from elmo_plugin.util.errors import ConfigurationError


@TokenEmbedder.register("elmo-token-embedder")
class Elmo(TokenEmbedder):
    """
    ELMo: task-specific blends of the layers of a biLM (section 3.2 of the paper).

    As a token embedder of any AllenNLP model it gives one vector per token. With `num_mixes` it
    learns several blends of one pass over the sentence, which is how `ElmoPlacement` serves a
    task's input and output.

    The biLM is frozen by default. With `trainable` it learns along; its parameters all have
    `bilm` in their names, so `optimizer: {parameter_groups: [[['bilm'], {lr: 1e-5}]]}` gives it
    a learning rate of its own. The paper's λ is a regulariser of the model:
    `regularizer: {regexes: [['layer_scores', {type: 'l2', alpha: 0.001}]]}`.

    # Parameters

    options_file, weight_file : `Optional[str]`
        The two files of a biLM; default `ELMO_OPTIONS` and `ELMO_WEIGHTS`. A trained archive
        contains the biLM and does not need them.
    num_mixes : `int`, optional (default = `1`)
        How many blends are learned.
    layers : `Union[str, List[int]]`, optional (default = `"all"`)
        Which layers are blended: `all`, `last`, or numbers, 0 being the token layer.
    layer_norm : `Union[bool, str]`, optional (default = `False`)
        See `ScalarMix`.
    fixed_weights : `Optional[List[float]]`
        See `ScalarMix`.
    dropout : `float`, optional (default = `0.5`)
        Dropout on the blended vectors.
    trainable : `bool`, optional (default = `False`)
        Whether the biLM itself learns.
    stateful, warm_up : `bool`
        What a sentence starts from; see `Bilm`.
    dtype : `str`, optional (default = `"float32"`)
        `bfloat16` for a faster, slightly less exact biLM, `int8` for single sentences through a
        large one on a CPU; see `load_bilm`.
    cache : `Union[bool, str]`, optional (default = `False`)
        Where to keep the layers of every sentence on disk, so that the biLM reads it once and
        never again, in this run or another: `true` for the folder in `ELMO_CACHE` (nowhere if
        that is empty), or a folder. Layers then have half precision:
        `2 * (token_dim + 2 * n_layers * projection_dim)` bytes per token, 5,120 for the
        published biLM. An archive works without it.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ConfigurationError`
        If a file is missing, damaged or does not fit, or a setting is impossible.
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
    ) -> None:
        super().__init__()
        if cache and (trainable or stateful):
            raise ConfigurationError(
                "ELMo's `cache` keeps what a sentence gives for good: expected `trainable` and "
                f"`stateful` false, found `trainable` {trainable} and `stateful` {stateful}. Set "
                "`cache` to false."
            )
        if trainable and dtype != "float32":
            raise ConfigurationError("A biLM that learns needs `dtype` float32.")
        self.bilm = load_bilm(
            options_file,
            weight_file,
            stateful=stateful,
            warm_up=warm_up,
            dtype=dtype,
            serialization_dir=serialization_dir,
        ).requires_grad_(trainable)
        self._frozen_layers = FrozenLayers(self.bilm, _cache_folder(cache))
        self.layers = _chosen_layers(layers, self.bilm.num_layers)
        self.mixes = torch.nn.ModuleList(
            ScalarMix(len(self.layers), layer_norm, fixed_weights) for _ in range(num_mixes)
        )
        self.dropout = torch.nn.Dropout(dropout)

    @overrides
    def get_output_dim(self) -> int:
        return self.bilm.output_dim

    @overrides(check_signature=False)
    def forward(self, elmo_tokens: torch.Tensor) -> torch.Tensor:
        """
        # Parameters

        elmo_tokens : `torch.Tensor`
            Shape `(batch_size, ..., num_tokens, max_characters_per_token)`. Character ids, as
            the indexers `elmo-characters` and `elmo_characters` give them.

        # Returns

        `torch.Tensor`
            Shape `(batch_size, ..., num_tokens, output_dim)`. The first blend, 0 at padding.
        """
        return self.blend(elmo_tokens)[0]

    def blend(self, elmo_tokens: torch.Tensor) -> List[torch.Tensor]:
        """
        All blends of one pass over the sentences; see `forward` for the shapes.
        """
        # Shape: (num_sentences, num_tokens, max_characters_per_token)
        ids = elmo_tokens.flatten(end_dim=-3)
        if any(parameter.requires_grad for parameter in self.bilm.parameters()):
            self._frozen_layers.forget()
            output = self.bilm(ids)
        elif self.bilm.stateful:
            with torch.no_grad():
                output = self.bilm(ids)
        else:
            output = self._frozen_layers(ids)
        layers = output.layers
        if self.layers != list(range(len(layers))):
            layers = layers[self.layers]
        # Shape: (num_sentences, num_tokens, 1)
        is_padding = (ids == 0).all(dim=-1, keepdim=True)
        blends = []
        for mix in self.mixes:
            # Shape: (num_sentences, num_tokens, output_dim)
            blend = mix(layers, output.mask)[:, 1:-1].masked_fill(is_padding, 0.0)
            blends.append(self.dropout(blend).view(*elmo_tokens.shape[:-1], blend.size(-1)))
        return blends

    @overrides(check_signature=False)
    def train(self, mode: bool = True) -> "Elmo":
        # The trainer says so when an epoch begins and when it is validated.
        self._frozen_layers.report()
        return super().train(mode)

    def before_checkpoint(self) -> None:
        """
        Called by `RecoverableTrainer`. A recovered run must find the layers that this one computed:
        in other batches, their last bits could differ.
        """
        self._frozen_layers.flush()


def _cache_folder(cache: Union[bool, str]) -> Optional[Path]:
    folder = os.environ["ELMO_CACHE"] if cache is True else cache
    return Path(folder) if folder else None


def _chosen_layers(layers: Union[str, List[int]], num_layers: int) -> List[int]:
    if layers == "all":
        return list(range(num_layers))
    if layers == "last":
        return [num_layers - 1]
    known = isinstance(layers, list) and set(layers) <= set(range(num_layers))
    if not known or not layers or len(set(layers)) != len(layers):
        raise ConfigurationError(
            'Expected `layers` to be "all", "last", or different numbers from 0 (the token layer) '
            f"to {num_layers - 1}, found {layers!r}."
        )
    return list(layers)
