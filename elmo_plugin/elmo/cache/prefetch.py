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
    AllenNLP's `multiprocess` data loader, one batch ahead: while the model works on a batch, what
    ELMo's caches hold of the next one is read from the disk.

    Gives the same batches in the same order, and has the same settings. (Where both it and the
    model draw from Python's `random`, they do so in another order.) Only the reading has a thread
    of its own: making batches is Python, which would keep the model waiting for the interpreter.
    """

    _target: Optional[torch.device] = None

    @overrides
    def set_target_device(self, device: torch.device) -> None:
        # Batches are looked up where they are made, on the CPU, and moved afterwards.
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
    """Looks up every text of a batch that has been indexed for ELMo, however deep it lies."""
    if not isinstance(batch, dict):
        return
    for name, value in batch.items():
        if name != "elmo_tokens" or not isinstance(value, torch.Tensor):
            _prefetch(value)
            continue
        # NumPy, since PyTorch would start a second team of threads from here, which would fight
        # with the model's for the processor. Shape:
        # (num_sentences, num_tokens, max_characters_per_token)
        ids = value.flatten(end_dim=-3).cpu().numpy()
        keys = sentence_keys(ids, (ids > 0).any(axis=2).sum(axis=1).tolist())
        for cache in LayerCache.opened():
            cache.prefetch(keys)
