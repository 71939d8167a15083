"""
The batches of a biLM's training, as lists of words.

A sentence of `n` words becomes `<S> w1 … wn </S>`, with `n + 1` positions. Item `i` is the input at
position `i` of the forward direction and item `i + 1` its target, so `<S>` is never a target and
`</S>` never an input. The backward direction does the same with the reversed sentence.
"""

from itertools import accumulate
from random import Random
from typing import Iterable, Iterator, List, NamedTuple, Optional, Tuple

from elmo_plugin.bilm.vocabulary_file import BEGIN_SENTENCE, END_SENTENCE
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


def rows_of(plan: Plan, rank: int, world_size: int) -> List[Row]:
    """The rows of a plan for process `rank` of `world_size`, longest first."""
    return [row for row in plan if row.number % world_size == rank]


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
        the longest sentences. Raises `ConfigurationError` if a process gets no row of a batch.
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
        if len(sizes) < world_size:
            raise ConfigurationError(
                f"Expected a sentence in every batch for each of {world_size} processes, found "
                f"{len(sizes)} sentences. Raise `tokens_per_batch`, give more text or train with "
                "fewer processes."
            )
        total = sum(sizes)
        num_batches = max(1, round(total / self.tokens_per_batch))
        cuts = [0]
        num_full = 0
        # The last batch needs a row for each process.
        for size, done in enumerate(accumulate(sizes[:-world_size]), start=1):
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
        waiting: Optional[Plan] = None
        for plan in self._windows(iter(sentences)):
            if len({row.number % world_size for row in plan}) == world_size:
                if waiting is not None:
                    yield waiting
                waiting = plan
            elif waiting is None:
                raise ConfigurationError(
                    f"Expected a row for each of {world_size} processes, found {len(plan)} rows. "
                    "Raise `batch_size`, give more text or train with fewer processes."
                )
            else:
                waiting = _joined(waiting, plan)
        if waiting is not None:
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
        segments: List[Segment] = []
        num_left = self.num_steps
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


def _joined(plan: Plan, following: Plan) -> Plan:
    more = {row.number: row.segments for row in following}
    return _sorted([Row(row.number, row.segments + more.get(row.number, [])) for row in plan])


def _sorted(plan: Plan) -> Plan:
    return sorted(plan, key=lambda row: -row.length)
