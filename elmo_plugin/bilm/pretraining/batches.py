"""
The batches of a biLM's training: which words they hold (plans), and their arrays.

A sentence of `n` words becomes `<S> w1 … wn </S>`, with `n + 1` positions. Item `i` is the input at
position `i` of the forward direction and item `i + 1` its target, so `<S>` is never a target and
`</S>` never an input. The backward direction does the same with the reversed sentence.
"""

import itertools
from random import Random
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy
import torch
from torch.nn.utils.rnn import pack_sequence
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from elmo_plugin.bilm.characters import CharacterMap
from elmo_plugin.bilm.pretraining.text import Text
from elmo_plugin.bilm.vocabulary_file import BEGIN_SENTENCE, END_SENTENCE, UNKNOWN
from elmo_plugin.util.errors import ConfigurationError

# Sentences for this number of batches are sorted by length together.
POOL_BATCHES = 64


class Segment(NamedTuple):
    """Positions `start` to `stop` of a sentence; `words` include `<S>` and `</S>`."""

    words: List[str]
    start: int
    stop: int


class Row(NamedTuple):
    """A row of a batch. `number` is its stream, or its index in a batch of whole sentences."""

    number: int
    segments: List[Segment]

    @property
    def length(self) -> int:
        return sum(segment.stop - segment.start for segment in self.segments)


# Rows of a batch of all processes together, longest first.
Plan = List[Row]


def _sorted(rows: Iterable[Row]) -> Plan:
    return sorted(rows, key=lambda row: -row.length)


class SentenceBatches:
    """
    Batches of whole sentences of similar length, each from an initial state of zeros. Pools of 64
    batches are sorted by length, which bounds both memory and padding. Each is cut into batches of
    about `tokens_per_batch` predictions per direction, of all processes together. A remainder at
    the end of the text is added to the last pool.
    """

    num_streams = 0

    def __init__(self, tokens_per_batch: int) -> None:
        self.tokens_per_batch = tokens_per_batch

    def plans(
        self, sentences: Iterable[List[str]], order: Optional[Random] = None, world_size: int = 1
    ) -> Iterator[Plan]:
        """
        The batches of a text. `order` shuffles the batches of a pool, which by default begin with
        the longest sentences. Every process gets a row of each batch, unless the text is too short.
        """
        for pool in self._pools(sentences):
            pool.sort(key=lambda sentence: sentence[0], reverse=True)
            plans = self._cut([size for size, _ in pool], world_size)
            if order is not None:
                order.shuffle(plans)
            for indices in plans:
                sentences_of_plan = (pool[index] for index in indices)
                yield [
                    Row(number, [Segment([BEGIN_SENTENCE, *words.split(), END_SENTENCE], 0, size)])
                    for number, (size, words) in enumerate(sentences_of_plan)
                ]

    def _pools(self, sentences: Iterable[List[str]]) -> Iterator[List[Tuple[int, str]]]:
        """Pools of sizes and sentences; a string needs a tenth of the memory of a list of words."""
        pool_size = POOL_BATCHES * self.tokens_per_batch
        pool: List[Tuple[int, str]] = []
        size, end, end_size = 0, 0, 0
        for words in sentences:
            pool.append((len(words) + 1, " ".join(words)))
            size += len(words) + 1
            if not end and size >= pool_size:
                end, end_size = len(pool), size
            # Yielded only when the next pool has a full batch: a shorter rest stays in this pool.
            if end and size >= end_size + self.tokens_per_batch:
                yield pool[:end]
                pool, size, end = pool[end:], size - end_size, 0
        if pool:
            yield pool

    def _cut(self, sizes: List[int], world_size: int) -> List[range]:
        total = sum(sizes)
        num_batches = max(1, round(total / self.tokens_per_batch))
        cuts = [0]
        num_full = 0
        # The last batch needs a row for each process.
        for size, done in enumerate(itertools.accumulate(sizes[:-world_size]), start=1):
            if done * num_batches // total > num_full and size - cuts[-1] >= world_size:
                cuts.append(size)
                num_full = done * num_batches // total
        return [range(start, stop) for start, stop in zip(cuts, [*cuts[1:], len(sizes)])]


class StreamBatches:
    """
    Batches of `batch_size` rows, of all processes together, and up to `num_steps` positions per
    row. Each row continues the same row of the previous batch.

    After a sentence a row takes the next one of the text, so all rows together contain it once. The
    backward direction reverses each sentence, but not their order. The last batches are smaller;
    one without a row for each process is added to the previous batch.
    """

    def __init__(self, batch_size: int, num_steps: int) -> None:
        self.num_streams = batch_size
        self.num_steps = num_steps

    def plans(
        self, sentences: Iterable[List[str]], order: Optional[Random] = None, world_size: int = 1
    ) -> Iterator[Plan]:
        """See `SentenceBatches.plans`; `order` is not used."""
        waiting: Plan = []
        for plan in self._windows(iter(sentences)):
            if waiting and len({row.number % world_size for row in plan}) < world_size:
                more = {row.number: row.segments for row in plan}
                rows = (Row(row.number, row.segments + more.get(row.number, [])) for row in waiting)
                waiting = _sorted(rows)
            else:
                if waiting:
                    yield waiting
                waiting = plan
        if waiting:
            yield waiting

    def _windows(self, sentences: Iterator[List[str]]) -> Iterator[Plan]:
        # The rest of the current sentence of each row.
        rests: List[Optional[Segment]] = [None] * self.num_streams
        while True:
            plan: Plan = []
            for number, rest in enumerate(rests):
                segments, rests[number] = self._advance(rest, sentences)
                if segments:
                    plan.append(Row(number, segments))
            if not plan:
                return
            yield _sorted(plan)

    def _advance(
        self, rest: Optional[Segment], sentences: Iterator[List[str]]
    ) -> Tuple[List[Segment], Optional[Segment]]:
        segments, num_left = [], self.num_steps
        while num_left:
            if rest is None:
                words = next(sentences, None)
                if words is None:
                    break
                rest = Segment([BEGIN_SENTENCE, *words, END_SENTENCE], 0, len(words) + 1)
            words, start, end = rest
            stop = min(end, start + num_left)
            segments.append(Segment(words, start, stop))
            num_left -= stop - start
            rest = Segment(words, stop, end) if stop < end else None
        return segments, rest


class BatchBuilder:
    """Makes a language model's input from rows. Targets not in `softmax_ids` become `<UNK>`."""

    def __init__(
        self, characters: CharacterMap, softmax_ids: Dict[str, int], bidirectional: bool = True
    ) -> None:
        self._characters = characters
        self._softmax_ids = softmax_ids
        self._directions = ("forward", "backward") if bidirectional else ("forward",)

    def build(self, rows: List[Row]) -> Dict[str, Any]:
        """
        Arguments of `LanguageModel.forward`, without streams, for `rows`, the longest first. They
        are arrays, because a worker would open a file and a connection for each tensor it sends.
        """
        sides = [_words(rows, direction) for direction in self._directions]
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

        batch = {"characters": characters, "batch_sizes": order.batch_sizes.tolist()}
        for direction, (inputs, targets) in zip(self._directions, sides):
            batch[f"{direction}_ids"] = packed(inputs)
            batch[f"{direction}_targets"] = softmax_ids[packed(targets)]
        return batch


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


class TextPass(IterableDataset):
    """
    The batches of one pass over a text, for one of several processes.

    `seed` shuffles the text. `first` is the number of the first batch to build, and `process` the
    rank and the number of processes. Every worker computes the plans of all batches, which is cheap
    and needs no `builder`, and builds the arrays of its share.
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
        plan: Plan = []
        for plan in self._batching.plans(self._text.sentences(order), order, self._world_size):
            if len({row.number % self._world_size for row in plan}) < self._world_size:
                raise ConfigurationError(
                    f"Expected a row of every batch for each of {self._world_size} processes, "
                    f"found {len(plan)} rows. Raise `tokens_per_batch` or `batch_size`, give more "
                    "text or train with fewer processes."
                )
            yield plan
        if not plan:
            raise ConfigurationError(
                f"Expected sentences, found no word in {', '.join(map(str, self._text.shards))}."
            )

    def batches(self, num_workers: int = 0) -> Iterator[Dict[str, Any]]:
        """The batches of this process, built by `num_workers` workers, or by itself if 0."""
        built: Iterable[Dict[str, Any]] = self
        if num_workers:
            # The global generator, from which the loader draws a seed by default, is the model's.
            own = torch.Generator().manual_seed(0)
            # Without a function to collate, workers would convert arrays to tensors.
            built = DataLoader(self, None, num_workers=num_workers, collate_fn=dict, generator=own)
        for batch in built:
            yield {
                name: torch.from_numpy(value) if isinstance(value, numpy.ndarray) else value
                for name, value in batch.items()
            }

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        assert self._builder is not None
        worker = get_worker_info()
        number, num_workers = (worker.id, worker.num_workers) if worker else (0, 1)
        num_streams = len(range(self._rank, self._batching.num_streams, self._world_size))
        # Numbered before slicing, because streams restart in the first batch of a pass only.
        plans = enumerate(self.plans())
        for index, plan in itertools.islice(plans, self._first + number, None, num_workers):
            rows = [row for row in plan if row.number % self._world_size == self._rank]
            batch = self._builder.build(rows)
            if num_streams:
                batch["streams"] = numpy.array([row.number // self._world_size for row in rows])
                batch["restart"], batch["num_streams"] = index == 0, num_streams
            yield batch
