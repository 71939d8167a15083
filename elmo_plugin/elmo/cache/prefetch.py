from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, Optional

import torch
from allennlp.data import DataLoader
from allennlp.data.data_loaders import MultiProcessDataLoader, TensorDict
from allennlp.nn.util import move_to_device
from overrides import overrides

from elmo_plugin.elmo.cache.keys import sentence_keys
from elmo_plugin.elmo.cache.layer_cache import LayerCache


@DataLoader.register("elmo-prefetch")
class PrefetchingDataLoader(MultiProcessDataLoader):
    """
    AllenNLP's `multiprocess` data loader, with the same settings and batches. It also reads ELMo's
    layers of the next batch from the cache while the model processes the current one. (If both draw
    random numbers from Python's `random`, they draw them in another order.)
    """

    _target: Optional[torch.device] = None

    @overrides
    def set_target_device(self, device: torch.device) -> None:
        # Batches stay on the CPU until their sentences have been read from the cache.
        self._target = device

    @overrides
    def __iter__(self) -> Iterator[TensorDict]:
        batches = super().__iter__()
        following = next(batches, None)
        with ThreadPoolExecutor(1, thread_name_prefix="elmo-prefetch") as thread:
            while following is not None:
                batch, following = following, next(batches, None)
                reading = thread.submit(_prefetch, following) if LayerCache.opened() else None
                yield batch if self._target is None else move_to_device(batch, self._target)
                if reading is not None:
                    reading.result()


def _prefetch(batch: Any) -> None:
    """Reads the layers of all character ids in a batch, which may be nested."""
    if not isinstance(batch, dict):
        return
    for name, value in batch.items():
        if name != "elmo_tokens" or not isinstance(value, torch.Tensor):
            _prefetch(value)
            continue
        # NumPy, because PyTorch would start further threads here, which compete with those of the
        # model. Shape: (num_sentences, num_tokens, max_characters_per_token)
        ids = value.flatten(end_dim=-3).cpu().numpy()
        keys = sentence_keys(ids, (ids > 0).any(axis=2).sum(axis=1).tolist())
        for cache in LayerCache.opened():
            cache.prefetch(keys)
