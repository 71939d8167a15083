import logging
import random
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple, TypeVar, Union

from allennlp.data import DatasetReader, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import LabelField, ListField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.tokenizer import Tokenizer, tokenizer_of, treebank_words
from elmo_plugin.util.errors import ConfigurationError, check_no_settings

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

#: The namespace of labels in vocabularies.
LABELS = "labels"


class KnownLabelField(LabelField):
    """A label whose index is -1 if the vocabulary lacks it; AllenNLP raises an error."""

    @overrides
    def index(self, vocab: Vocabulary) -> None:
        if isinstance(self.label, int) or self.label in vocab.get_token_to_index_vocabulary(LABELS):
            super().index(vocab)
        else:
            self._label_id = -1


class TaskReader(DatasetReader):
    """
    Base of the task readers, which distribute instances over processes with `shard_iterable`.
    Raises `ConfigurationError` if a setting is unknown or invalid, or the sample of a file is
    empty, and `ValueError` with file and place if a file is malformed.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    fraction, fraction_seed : `float`, `int`
        Read a random sample of a file: each instance with probability `fraction`. With the same
        seed, a larger sample contains a smaller one.
    """

    #: The fields of an instance that hold text.
    text_fields: Tuple[str, ...] = ("tokens",)
    #: The field with the gold answer, which unlabelled instances lack.
    gold_field = "label"
    #: In `.csv`, `.tsv` and `.jsonl`, if the task reads them: the columns of texts and of labels.
    columns: Tuple[str, ...] = ()
    label_column = ""
    #: Whether labels of words are tags of spans, in BIO or BIOUL.
    has_spans = True
    #: What splits raw text into words, here and in the predictor.
    split: Tokenizer = staticmethod(treebank_words)

    def __init__(
        self,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        max_instances: Optional[int] = None,
        fraction: float = 1.0,
        fraction_seed: int = 0,
        serialization_dir: Optional[str] = None,
        **unknown: Any,
    ) -> None:
        check_no_settings(self, unknown)
        _check_fraction(fraction=fraction)
        super().__init__(
            max_instances=max_instances,
            manual_distributed_sharding=True,
            manual_multiprocess_sharding=True,
            serialization_dir=serialization_dir,
        )
        self._token_indexers = token_indexers or {"words": SingleIdTokenIndexer()}
        self._fraction, self._fraction_seed = fraction, fraction_seed

    @overrides
    def shard_iterable(self, iterable: Iterable[_T]) -> Iterator[_T]:
        # Sampled first, so that the sample does not depend on the number of processes.
        if self._fraction < 1:
            iterable = _sample(iterable, "fraction", self._fraction, self._fraction_seed)
        return super().shard_iterable(iterable)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        for name in self.text_fields:
            field = instance[name]
            for text in field if isinstance(field, ListField) else (field,):
                text.token_indexers = self._token_indexers


class OwnDataReader(TaskReader):
    """
    Base of the readers that also read users' own files, which may lack a dev set.

    # Parameters

    tokenize : `str`
        The language of raw text, for `tokenizer_of`.
    dev_fraction : `float`
        Leave out a random part of each file: each of its rows with this probability.
    is_dev : `bool`
        Read only the part that other readers with the same `dev_fraction` leave out.
    """

    def __init__(
        self, tokenize: str = "en", dev_fraction: float = 0.0, is_dev: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.split = tokenizer_of(tokenize)
        if dev_fraction:
            _check_fraction(dev_fraction=dev_fraction)
        self._dev_fraction, self._is_dev = dev_fraction, is_dev

    def tokens(self, text: str) -> List[Token]:
        """The words of raw text."""
        return [Token(word) for word in self.split(text)]

    def part(self, rows: Iterable[_T], file_path: str) -> Iterable[_T]:
        """The rows of a file that this reader reads: all, or by `dev_fraction` and `is_dev`."""
        if not self._dev_fraction:
            return rows
        if self._is_dev:
            message = "%s: %g of it, drawn at random, takes the place of a dev file"
            logger.info(message, file_path, self._dev_fraction)
        # The seed is fixed, so that runs with different seeds are compared on the same dev set.
        return _sample(rows, "dev_fraction", self._dev_fraction, "dev", self._is_dev)


def _check_fraction(**settings: float) -> None:
    for name, value in settings.items():
        if not 0.0 < value <= 1.0:
            raise ConfigurationError(f"Expected a `{name}` above 0 and at most 1, found {value}.")


def _sample(
    parts: Iterable[_T], name: str, fraction: float, seed: Union[int, str], drawn: bool = True
) -> Iterator[_T]:
    """Yields a random `fraction` of the parts, or the others if not `drawn`."""
    generator = random.Random(seed)
    num_parts = num_yielded = 0
    for part in parts:
        num_parts += 1
        if (generator.random() < fraction) is drawn:
            num_yielded += 1
            yield part
    if num_parts and not num_yielded:
        advice = ", or another `fraction_seed`"
        if name == "dev_fraction":
            advice = " or a dev file, or see in docs/data.md what ends an instance in the file"
        raise ConfigurationError(
            f"A `{name}` of {fraction} leaves nothing of {num_parts} instances. Choose another one"
            f"{advice}."
        )
