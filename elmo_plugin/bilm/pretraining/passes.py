import itertools
from random import Random
from typing import Any, Dict, Iterator, Optional, Tuple, Union

import numpy
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from elmo_plugin.bilm.pretraining.batches import Plan, SentenceBatches, StreamBatches, rows_of
from elmo_plugin.bilm.pretraining.tensors import BatchBuilder
from elmo_plugin.bilm.pretraining.text import Text
from elmo_plugin.util.errors import ConfigurationError


class TextPass(IterableDataset):
    """
    The batches of one pass over a text, for one of several processes. Every worker computes the
    plans of all batches, which is cheap, and builds the tensors of its share.

    # Parameters

    text : `Text`
    batching : `Union[SentenceBatches, StreamBatches]`
        How sentences are grouped into batches.
    builder : `Optional[BatchBuilder]`
        Not needed for plans.
    seed : `Optional[str]`, optional (default = `None`)
        Seed of the order. Default: the order of the text.
    first : `int`, optional (default = `0`)
        Number of the first batch to build.
    process : `Tuple[int, int]`, optional (default = `(0, 1)`)
        Rank of this process and number of processes.
    """

    def __init__(
        self,
        text: Text,
        batching: Union[SentenceBatches, StreamBatches],
        builder: Optional[BatchBuilder],
        seed: Optional[str] = None,
        first: int = 0,
        process: Tuple[int, int] = (0, 1),
    ) -> None:
        self._text = text
        self._batching = batching
        self._builder = builder
        self._seed = seed
        self._first = first
        self._rank, self._world_size = process

    def plans(self) -> Iterator[Plan]:
        """
        Every batch of the pass, of all processes together.

        # Raises

        `ConfigurationError`
            If the text is empty, or too short for the number of processes.
        """
        order = None if self._seed is None else Random(self._seed)
        sentences = self._text.sentences(order)
        is_empty = True
        for plan in self._batching.plans(sentences, order, self._world_size):
            is_empty = False
            yield plan
        if is_empty:
            raise ConfigurationError(
                f"Expected sentences, found no word in {', '.join(map(str, self._text.shards))}."
            )

    def batches(self, num_workers: int) -> Iterator[Dict[str, Any]]:
        """The batches of this process, built by `num_workers` workers, or by itself if 0."""
        if num_workers == 0:
            return iter(self)
        # Otherwise the loader would draw a seed from the global generator, which the model uses.
        generator = torch.Generator()
        generator.manual_seed(0)
        loader = DataLoader(
            self,
            batch_size=None,
            num_workers=num_workers,
            collate_fn=_as_arrays,
            generator=generator,
        )
        return map(_as_tensors, loader)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        worker = get_worker_info()
        number, num_workers = (worker.id, worker.num_workers) if worker else (0, 1)
        # Numbered before slicing, because streams restart in the first batch of a pass only.
        plans = enumerate(self.plans())
        for index, plan in itertools.islice(plans, self._first + number, None, num_workers):
            yield self._built(index, plan)

    def _built(self, index: int, plan: Plan) -> Dict[str, Any]:
        assert self._builder is not None
        rows = rows_of(plan, self._rank, self._world_size)
        num_streams = len(range(self._rank, self._batching.num_streams, self._world_size))
        numbers = [row.number // self._world_size for row in rows]
        return {
            **self._builder.build(rows),
            "streams": torch.tensor(numbers) if num_streams else None,
            "restart": bool(num_streams) and index == 0,
            "num_streams": num_streams,
        }


def _as_arrays(batch: Any) -> Dict[str, Any]:
    """Arrays, because a worker would open a file and a connection for each tensor it sends."""
    return {
        name: value.numpy() if isinstance(value, torch.Tensor) else value
        for name, value in batch.items()
    }


def _as_tensors(batch: Dict[str, Any]) -> Dict[str, Any]:
    return {
        name: torch.from_numpy(value) if isinstance(value, numpy.ndarray) else value
        for name, value in batch.items()
    }
