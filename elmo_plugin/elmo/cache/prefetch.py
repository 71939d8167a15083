from concurrent.futures import ThreadPoolExecutor
from typing import Any, Iterator, Optional

import numpy
import torch
from allennlp.data import DataLoader
from allennlp.data.data_loaders import MultiProcessDataLoader, TensorDict
from allennlp.nn.util import move_to_device
from overrides import overrides

from elmo_plugin.elmo.cache.layer_cache import LayerCache, sentence_key


@DataLoader.register("elmo-prefetch")
class PrefetchingDataLoader(MultiProcessDataLoader):
    """
    AllenNLP's `multiprocess` data loader, which also reads ELMo's layers of the next batch from the
    cache while the model processes the current one. Settings and batches are the same. If the
    loader and the model both use Python's `random`, the order of their draws differs.
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
    # In one call, because a cache keeps what the last two calls have read.
    keys = list(dict.fromkeys(_keys(batch)))
    for cache in LayerCache.opened():
        cache.prefetch(keys)


def _keys(fields: Any, sentences: Optional[torch.Tensor] = None) -> Iterator[bytes]:
    """Keys of all sentences. A field `TEXT_sentences` divides its text, see `Placement.forward`."""
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
        if name == "elmo_tokens" and isinstance(value, torch.Tensor):
            yield from map(sentence_key, _sentences(value, sentences))
        else:
            yield from _keys(value, fields.get(f"{name}_sentences", sentences))


def _sentences(
    character_ids: torch.Tensor, sentences: Optional[torch.Tensor]
) -> Iterator[numpy.ndarray]:
    """The character ids of each sentence, shape `(num_tokens, max_characters_per_token)`."""
    # NumPy, because PyTorch would start further threads here, which compete with the model's.
    # Shape: (num_texts, num_tokens, max_characters_per_token)
    texts = character_ids.flatten(end_dim=-3).cpu().numpy()
    # Shape: (num_texts, num_tokens)
    mask: numpy.ndarray = numpy.any(texts > 0, axis=2)
    numbers = numpy.zeros_like(mask, int) if sentences is None else sentences.cpu().numpy()
    for text, is_token, of_token in zip(texts, mask, numbers):
        starts = numpy.flatnonzero(numpy.diff(of_token[is_token])) + 1
        yield from numpy.split(text[is_token], starts)
