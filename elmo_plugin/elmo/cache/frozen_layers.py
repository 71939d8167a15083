from contextlib import nullcontext
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from elmo_plugin.bilm import Bilm, BilmOutput
from elmo_plugin.elmo.cache.layer_cache import LayerCache, entry_width, sentence_key
from elmo_plugin.elmo.token_batches import token_batches
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.tensors import WeightState, distinct_rows, is_exporting, uncompiled


class FrozenLayers:
    """
    The layers of a biLM that is neither trained nor stateful.

    Computes each distinct sentence of a batch once, in batches of similar length and bounded size.
    With a cache, it computes only sentences that the cache lacks, and rounds all layers to half
    precision, so results do not depend on what the cache contains. If the weights change, earlier
    entries are not used. A change of a few elements through `weight.data` is noticed at the next
    `train()` or `eval()`; see `WeightState`. Raises `ConfigurationError` if half precision cannot
    represent a number that the cache would keep.
    """

    def __init__(self, bilm: Bilm, cache_folder: Optional[Path] = None) -> None:
        self._bilm = bilm
        self._cache_folder = cache_folder
        # Whether layers are rounded to half precision, decided when the cache is opened or left.
        self._rounds = False
        self._cache: Optional[LayerCache] = None
        # The settings and the weights for which the cache was opened.
        self._cached_for: Optional[Tuple[Any, WeightState]] = None

    def __getstate__(self) -> Dict[str, Any]:
        # A copy opens the cache again.
        return {**self.__dict__, "_cache": None, "_cached_for": None}

    @uncompiled
    def __call__(self, character_ids: torch.Tensor) -> BilmOutput:
        """Like `Bilm.forward`, but in float32 (float64 if the biLM is)."""
        if is_exporting():
            layers, mask = self._bilm(character_ids)
            return BilmOutput(layers.half().to(self._dtype()) if self._rounds else layers, mask)
        mask = self._bilm.checked_mask(character_ids)
        cache = self._current_cache()
        with torch.no_grad():
            # Shapes: (num_distinct, num_tokens, max_characters_per_token) and (batch_size,)
            ids, lengths, number_of = _distinct_sentences(character_ids, mask)
            batches = token_batches(lengths, device_type=mask.device.type)
            in_one_batch = len(list(batches)) <= 1 and len(ids) == len(mask)
            if in_one_batch and not self._rounds:
                output = self._bilm(character_ids)
                return BilmOutput(output.layers.to(self._dtype()), output.mask)
            # Shape: (num_distinct, num_tokens + 2, entry_width)
            entries = torch.zeros(
                len(ids),
                mask.size(1) + 2,
                entry_width(self._bilm),
                dtype=torch.float16 if self._rounds else self._dtype(),
                device="cpu" if self._rounds else mask.device,
            )
            keys = [] if cache is None else _keys(ids, lengths)
            missing = range(len(entries)) if cache is None else _read(cache, keys, entries)
            self._compute(ids, lengths, missing, entries)
            if cache is not None:
                cache.write((keys[n], entries[n, : lengths[n] + 2].numpy()) for n in missing)
            return self._output(entries.to(mask.device)[number_of], mask)

    def leave_cache(self) -> None:
        """Stops using the cache. Layers are rounded as before."""
        if self._cache_folder is not None:
            self._cache_folder = self._cache = None
            self._rounds = True

    def _compute(
        self, ids: torch.Tensor, lengths: List[int], missing: Sequence[int], entries: torch.Tensor
    ) -> None:
        lengths = [lengths[number] for number in missing]
        # Autocast must not change what the cache contains.
        exact = torch.autocast(ids.device.type, enabled=False) if self._rounds else nullcontext()
        for batch in token_batches(lengths, device_type=ids.device.type):
            numbers, longest = list(missing[batch]), lengths[batch][-1]
            with exact:
                layers = self._bilm(ids[numbers, :longest]).layers
            # Shape: (num_layers - 1, num_sentences, longest + 2, output_dim)
            tokens, hidden = layers[0, ..., : self._bilm.options.token_dim], layers[1:]
            # Shape: (num_sentences, longest + 2, entry_width)
            computed = torch.cat([tokens, *hidden], dim=-1).to(entries)
            if self._rounds and not bool(computed.isfinite().all()):
                raise ConfigurationError(
                    "ELMo's cache cannot be used with these weights: a layer contains numbers that "
                    "half precision cannot represent (above 65,504, infinite or NaN). Check the "
                    "biLM's weights, or set `cache` to false."
                )
            entries[numbers, : longest + 2] = computed

    def _output(self, entries: torch.Tensor, mask: torch.Tensor) -> BilmOutput:
        dim, token_dim = self._bilm.output_dim, self._bilm.options.token_dim
        entries = entries.to(self._dtype())
        # Shape: (1, batch_size, num_tokens + 2, output_dim)
        tokens = entries[..., :token_dim].repeat(1, 1, dim // token_dim).unsqueeze(0)
        # Shape: (num_layers - 1, batch_size, num_tokens + 2, output_dim)
        hidden = entries[..., token_dim:].unflatten(-1, (-1, dim)).permute(2, 0, 1, 3)
        positions = torch.arange(entries.size(1), device=mask.device)
        return BilmOutput(
            torch.cat([tokens, hidden]), positions < mask.sum(dim=1, keepdim=True) + 2
        )

    def _dtype(self) -> torch.dtype:
        return torch.promote_types(torch.float32, next(self._bilm.parameters()).dtype)

    def _current_cache(self) -> Optional[LayerCache]:
        if self._cache_folder is None:
            return None
        settings = self._bilm.weights_version, self._bilm.warm_up
        weights, current = list(self._bilm.parameters()), self._cached_for
        if current is None or current[0] != settings or not current[1].is_current(weights):
            self._cached_for = settings, WeightState(weights)
            self._cache = LayerCache.open(self._cache_folder, self._bilm)
            self._rounds = self._cache is not None
            if self._cache is None:
                # Not tried again: one warning is enough.
                self._cache_folder = None
        return self._cache


def _distinct_sentences(
    character_ids: torch.Tensor, mask: torch.Tensor
) -> Tuple[torch.Tensor, List[int], torch.Tensor]:
    """Distinct sentences, shortest first; their lengths; the number of each row's sentence."""
    # Zeros at padding, so that equal sentences are equal rows.
    ids = character_ids.long() * mask.unsqueeze(dim=2)
    # Shape: (num_sentences, 1 + num_tokens * max_characters_per_token)
    rows = torch.cat([mask.sum(dim=1, keepdim=True), ids.flatten(start_dim=1)], dim=1)
    distinct, number_of = distinct_rows(rows)
    order = distinct[:, 0].argsort()
    ids = distinct[order][:, 1:].unflatten(1, ids.shape[1:])
    return ids, distinct[order, 0].tolist(), order.argsort()[number_of]


def _keys(character_ids: torch.Tensor, lengths: List[int]) -> List[bytes]:
    ids = character_ids.cpu().numpy()
    return [sentence_key(words[:length]) for words, length in zip(ids, lengths)]


def _read(cache: LayerCache, keys: List[bytes], entries: torch.Tensor) -> List[int]:
    """Copies cached layers into `entries`. Returns the numbers of the entries still missing."""
    numbers = {key: number for number, key in enumerate(keys)}
    for key, layers in cache.read(keys):
        entries.numpy()[numbers.pop(key), : len(layers)] = layers
    return list(numbers.values())
