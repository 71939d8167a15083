import itertools
from typing import Any, Dict, Iterator, Optional, Tuple, Union

import torch
from allennlp.data import DataLoader, DatasetReader, Instance, Vocabulary
from allennlp.nn.util import move_to_device
from overrides import overrides

from elmo_plugin.bilm.pretraining.batches import SentenceBatches, StreamBatches
from elmo_plugin.bilm.pretraining.language_model import options_for
from elmo_plugin.bilm.pretraining.passes import TextPass
from elmo_plugin.bilm.pretraining.tensors import BatchBuilder
from elmo_plugin.bilm.pretraining.text import Text, TextPath
from elmo_plugin.bilm.token_embeddings import map_of
from elmo_plugin.tasks.bilm.reader import BilmReader
from elmo_plugin.tasks.bilm.vocabulary import softmax_ids
from elmo_plugin.util.distributed import process
from elmo_plugin.util.errors import ConfigurationError

ORDERS = ("sentences", "streams")


@DataLoader.register("elmo-bilm")
class BilmDataLoader(DataLoader):
    """
    Batches for training and evaluating a biLM, straight from text; no file is held in memory.

    An epoch is one pass over the text. Its batches follow from `seed` and the number of the epoch
    alone, so a run can be taken up at any batch (`start_at`), and the number of workers changes
    nothing. Several processes share each batch out between them, row by row.

    # Parameters

    reader : `DatasetReader`
        An `elmo-bilm` reader. Given by AllenNLP, as is `data_path`.
    data_path : `TextPath`
        A file, a folder, a pattern, or several of them; see `Text`.
    order : `str`, optional (default = `"sentences"`)
        `sentences`: every sentence is read by itself, in batches of about the same length.
        `streams`: each row of a batch reads one sentence after the other, and what it remembers
        is carried from batch to batch, as bilm-tf does.
    tokens_per_batch : `Optional[int]`
        For `sentences`: predictions per batch and direction, of all processes together; default
        4096.
    batch_size, num_steps : `Optional[int]`
        For `streams`: rows of all processes together (default 128), and positions that a row
        advances per batch (default 20).
    shuffle : `bool`, optional (default = `True`)
        Shuffle files, their lines, and batches. Otherwise the text is read as it stands.
    seed : `int`, optional (default = `13370`)
        What the order of each epoch is drawn from.
    num_workers : `int`, optional (default = `0`)
        Processes that build batches in the background; 0 builds them when they are asked for.
    shuffle_lines : `int`, optional (default = `100_000`)
        How many lines are held to shuffle them, see `Text`.

    # Raises

    `ConfigurationError`
        If there is no such text, or if a setting is impossible or belongs to another `order`.
    """

    def __init__(
        self,
        reader: DatasetReader,
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
        if not isinstance(reader, BilmReader):
            raise ConfigurationError(
                "The elmo-bilm data loader expected a dataset reader of type elmo-bilm, found "
                f"{type(reader).__name__}."
            )
        _check(num_workers=(num_workers, 0), shuffle_lines=(shuffle_lines, 1))
        self._reader = reader
        self._data_path = data_path
        self._batches = _batches(order, tokens_per_batch, batch_size, num_steps)
        self._text = Text(data_path, shuffle_lines, reader.max_tokens, reader.decoding_errors)
        self._seed = seed if shuffle else None
        self._num_workers = num_workers
        self._builder: Optional[BatchBuilder] = None
        self._device: Optional[torch.device] = None
        self._length: Optional[int] = None
        self._epoch = 0
        self._start = (0, 0)
        self._is_stopped = False

    def start_at(self, epoch: int, batch: int) -> None:
        """
        Takes a run up where it stopped: the next iteration is that of `epoch`, and the first
        `batch` batches of it will be empty placeholders that cost nothing. All others are what
        they would have been.

        # Parameters

        epoch : `int`
            Number of epochs that are over.
        batch : `int`
            Number of batches of the next one that are over.
        """
        self._epoch = epoch
        self._start = (epoch, batch)

    def stop(self) -> None:
        """Ends the epoch after the batch at hand; those that follow yield nothing."""
        self._is_stopped = True

    @overrides
    def __len__(self) -> int:
        if self._length is None:
            # Shuffled otherwise, another epoch may have a batch more or less.
            self._length = sum(1 for _ in self._pass(epoch=0).plans())
        return self._length

    @overrides
    def __iter__(self) -> Iterator[Dict[str, Any]]:
        if self._builder is None:
            raise ValueError(
                "The elmo-bilm data loader expected a vocabulary before it is iterated over. "
                "Call `index_with` first."
            )
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
        batches = itertools.chain(({} for _ in range(first)), self._built(epoch, first))
        while not self._is_stopped and (batch := next(batches, None)) is not None:
            yield batch

    def _built(self, epoch: int, first: int) -> Iterator[Dict[str, Any]]:
        for batch in self._pass(epoch, first).batches(self._num_workers):
            yield batch if self._device is None else move_to_device(batch, self._device)

    def _pass(self, epoch: int, first: int = 0) -> TextPass:
        seed = None if self._seed is None else f"{self._seed}:{epoch}"
        return TextPass(self._text, self._batches, self._builder, seed, first, process())


def _batches(
    order: str,
    tokens_per_batch: Optional[int],
    batch_size: Optional[int],
    num_steps: Optional[int],
) -> Union[SentenceBatches, StreamBatches]:
    if order not in ORDERS:
        raise ConfigurationError(f"Expected `order` to be one of {ORDERS}, found {order!r}.")
    of_sentences = {"tokens_per_batch": tokens_per_batch}
    of_streams = {"batch_size": batch_size, "num_steps": num_steps}
    others = of_streams if order == "sentences" else of_sentences
    for name, value in others.items():
        if value is not None:
            raise ConfigurationError(
                f"`{name}` {value} does not belong to `order` {order!r}, which is set by "
                f"{' and '.join(of_sentences if others is of_streams else of_streams)}."
            )
    if order == "sentences":
        tokens_per_batch = 4096 if tokens_per_batch is None else tokens_per_batch
        _check(tokens_per_batch=(tokens_per_batch, 1))
        return SentenceBatches(tokens_per_batch)
    batch_size = 128 if batch_size is None else batch_size
    num_steps = 20 if num_steps is None else num_steps
    _check(batch_size=(batch_size, 1), num_steps=(num_steps, 1))
    return StreamBatches(batch_size, num_steps)


def _check(**settings: Tuple[int, int]) -> None:
    for name, (value, least) in settings.items():
        if value < least:
            raise ConfigurationError(f"Expected `{name}` of at least {least}, found {value}.")
