"""Passes over a text: batches as the tensors that `LanguageModel.forward` takes."""

import itertools
from random import Random
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

import numpy
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.pretraining.batches import (
    Plan,
    Row,
    SentenceBatches,
    StreamBatches,
    rows_of,
)
from elmo_plugin.bilm.pretraining.text import Text
from elmo_plugin.bilm.vocabulary_file import UNKNOWN
from elmo_plugin.util.errors import ConfigurationError


class BatchBuilder:
    """Makes a language model's input from rows. Targets not in `softmax_ids` become `<UNK>`."""

    def __init__(
        self, characters: CharacterMap, softmax_ids: Dict[str, int], bidirectional: bool = True
    ) -> None:
        self._characters = characters
        self._softmax_ids = softmax_ids
        self._bidirectional = bidirectional

    def build(self, rows: List[Row]) -> Dict[str, Any]:
        """Arguments of `LanguageModel.forward`, without streams, for `rows`, the longest first."""
        directions = ("forward", "backward") if self._bidirectional else ("forward",)
        sides = [_words(rows, direction) for direction in directions]
        # Input words first, because only they need characters.
        distinct = dict.fromkeys(word for inputs, _ in sides for word in inputs)
        characters = self._characters.sentence_ids(list(distinct)).astype(numpy.int64)
        distinct.update(dict.fromkeys(word for _, targets in sides for word in targets))
        unknown = self._softmax_ids[UNKNOWN]
        softmax_ids = numpy.array([self._softmax_ids.get(word, unknown) for word in distinct])
        index = dict(zip(distinct, range(len(distinct))))
        lengths = [row.length for row in rows]
        # The index of each packed position in the concatenated rows.
        order = pack_sequence(torch.arange(sum(lengths)).split(lengths))
        positions = order.data.numpy()

        def packed(words: List[str]) -> numpy.ndarray:
            return numpy.fromiter(map(index.__getitem__, words), numpy.int64, len(words))[positions]

        batch: Dict[str, Any] = {
            "characters": torch.from_numpy(characters),
            "batch_sizes": order.batch_sizes.tolist(),
            "backward_ids": None,
            "backward_targets": None,
        }
        for direction, (inputs, targets) in zip(directions, sides):
            batch[f"{direction}_ids"] = torch.from_numpy(packed(inputs))
            batch[f"{direction}_targets"] = torch.from_numpy(softmax_ids[packed(targets)])
        return batch


class TextPass(IterableDataset):
    """
    The batches of one pass over a text, for one of several processes.

    `seed` shuffles the text. `first` is the number of the first batch to build, and `process` the
    rank and the number of processes. Every worker computes the plans of all batches, which is cheap
    and needs no `builder`, and builds the tensors of its share.
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
        """All batches. Raises `ConfigurationError` if the text is empty or too short for them."""
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
        generator = torch.Generator().manual_seed(0)
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


def _words(rows: List[Row], direction: str) -> Tuple[List[str], List[str]]:
    """The input word and the target word of each position, row after row."""
    inputs: List[str] = []
    targets: List[str] = []
    for words, start, stop in (segment for row in rows for segment in row.segments):
        window = words[start : stop + 1]
        if direction == "backward":
            # The same positions of the reversed sentence.
            window = words[len(words) - stop - 1 : len(words) - start][::-1]
        inputs += window[:-1]
        targets += window[1:]
    return inputs, targets


def _as_arrays(batch: Any) -> Dict[str, Any]:
    """Arrays, because a worker would open a file and a connection for each tensor it sends."""
    return {k: v.numpy() if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


def _as_tensors(batch: Dict[str, Any]) -> Dict[str, Any]:
    return {k: torch.from_numpy(v) if isinstance(v, numpy.ndarray) else v for k, v in batch.items()}
