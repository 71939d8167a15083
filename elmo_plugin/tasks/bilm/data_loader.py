from typing import Any, Callable, Dict, Iterator, Optional, Tuple, Union

import torch
from allennlp.data import DataLoader, Instance, Vocabulary
from allennlp.nn.util import move_to_device
from overrides import overrides

from elmo_plugin.bilm.characters import map_of
from elmo_plugin.bilm.pretraining.batches import (
    BatchBuilder,
    SentenceBatches,
    StreamBatches,
    TextPass,
)
from elmo_plugin.bilm.pretraining.language_model import options_for
from elmo_plugin.bilm.pretraining.text import TextPath
from elmo_plugin.tasks.bilm.reader import BilmReader
from elmo_plugin.tasks.bilm.vocabulary import softmax_ids
from elmo_plugin.util.distributed import rank_and_world_size
from elmo_plugin.util.errors import ConfigurationError, check_least, check_one_of

# The kind of batches of each `order`, its settings and their defaults.
_ORDERS: Dict[str, Tuple[Any, Dict[str, int]]] = {
    "sentences": (SentenceBatches, {"tokens_per_batch": 4096}),
    "streams": (StreamBatches, {"batch_size": 128, "num_steps": 20}),
}


@DataLoader.register("elmo-bilm")
class BilmDataLoader(DataLoader):
    """
    Batches of text to train and evaluate a biLM. The text is never in memory as a whole.

    An epoch is one pass over the text. Only `seed` and the epoch's number decide its batches, so a
    run can be resumed at any batch with any number of workers. In distributed training, each
    process gets some rows of every batch.

    # Parameters

    order : `str`
        `sentences` or `streams`, see `SentenceBatches` and `StreamBatches`.
    tokens_per_batch, batch_size, num_steps : `Optional[int]`
        The first is only for `sentences` (default 4096), the others for `streams` (128 and 20).
    shuffle, shuffle_lines : `bool`, `int`
        Shuffle files, their lines (see `Text`) and, with `sentences`, batches.
    num_workers : `int`
        Processes that build batches in the background; with 0, this process builds them.
    """

    def __init__(
        self,
        reader: BilmReader,
        data_path: TextPath,
        order: str = "sentences",
        tokens_per_batch: Optional[int] = None,
        batch_size: Optional[int] = None,
        num_steps: Optional[int] = None,
        shuffle: bool = True,
        seed: int = 13370,
        num_workers: int = 0,
        shuffle_lines: int = 100_000,
    ) -> None:
        super().__init__()
        check_least(0, num_workers=num_workers)
        check_least(1, shuffle_lines=shuffle_lines)
        self._reader = reader
        self._data_path = data_path
        self._batches = _batches(
            order, tokens_per_batch=tokens_per_batch, batch_size=batch_size, num_steps=num_steps
        )
        self._text = reader.text(data_path, shuffle_lines)
        self._seed = seed if shuffle else None
        self._num_workers = num_workers
        self._builder: Optional[BatchBuilder] = None
        self._device: Optional[torch.device] = None
        self._length: Optional[int] = None
        self._epoch = 0
        self._start = (0, 0)
        self._is_over: Callable[[], bool] = lambda: False

    def start_at(self, epoch: int, batch: int) -> None:
        """Resumes in epoch `epoch`, counted from 0. Its first `batch` batches are empty."""
        self._epoch = epoch
        self._start = (epoch, batch)

    def stop_when(self, is_over: Callable[[], bool]) -> None:
        """Ends an epoch once `is_over`, called before each batch to train on, is true."""
        self._is_over = is_over

    @overrides
    def __len__(self) -> int:
        if self._length is None:
            # Another epoch, shuffled differently, may have a batch more or less.
            self._length = sum(1 for _ in self._pass(epoch=0).plans())
        return self._length

    @overrides
    def __iter__(self) -> Iterator[Dict[str, Any]]:
        assert self._builder is not None, "call `index_with` first"
        epoch, self._epoch = self._epoch, self._epoch + 1
        return self._epoch_batches(epoch)

    @overrides
    def iter_instances(self) -> Iterator[Instance]:
        yield from self._reader.read(self._data_path)

    @overrides
    def index_with(self, vocab: Vocabulary) -> None:
        ids = softmax_ids(vocab)
        options = options_for(self._reader.options, list(ids))
        self._builder = BatchBuilder(map_of(options), ids, options.bidirectional)

    @overrides
    def set_target_device(self, device: torch.device) -> None:
        self._device = device

    def _epoch_batches(self, epoch: int) -> Iterator[Dict[str, Any]]:
        start_epoch, start_batch = self._start
        first = start_batch if epoch == start_epoch else 0
        yield from ({} for _ in range(first))
        batches = iter(self._pass(epoch, first).batches(self._num_workers))
        while not self._is_over() and (batch := next(batches, None)) is not None:
            yield batch if self._device is None else move_to_device(batch, self._device)

    def _pass(self, epoch: int, first: int = 0) -> TextPass:
        seed = None if self._seed is None else f"{self._seed}:{epoch}"
        return TextPass(
            self._text, self._batches, self._builder, seed, first, rank_and_world_size()
        )


def _batches(order: str, **settings: Optional[int]) -> Union[SentenceBatches, StreamBatches]:
    check_one_of(_ORDERS, order=order)
    given = {name: value for name, value in settings.items() if value is not None}
    kind, defaults = _ORDERS[order]
    for name, value in given.items():
        if name not in defaults:
            raise ConfigurationError(
                f"Expected only {' and '.join(defaults)} for `order` {order!r}, found `{name}` "
                f"{value}. Remove it, or choose another `order`."
            )
    check_least(1, **given)
    return kind(**{**defaults, **given})
