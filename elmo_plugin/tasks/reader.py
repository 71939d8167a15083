import random
from typing import Any, Dict, Iterable, Iterator, Optional, Tuple, TypeVar

from allennlp.data import DatasetReader, Instance, TokenIndexer
from allennlp.data.fields import ListField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError, check_no_settings

_T = TypeVar("_T")


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
    label_field = "label"

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
        if not 0.0 < fraction <= 1.0:
            raise ConfigurationError(
                f"Expected a `fraction` above 0 and at most 1, found {fraction}."
            )
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
        return super().shard_iterable(iterable if self._fraction == 1 else self._sample(iterable))

    def _sample(self, iterable: Iterable[_T]) -> Iterator[_T]:
        generator = random.Random(self._fraction_seed)
        num_parts = num_drawn = 0
        for part in iterable:
            num_parts += 1
            if generator.random() < self._fraction:
                num_drawn += 1
                yield part
        if num_parts and not num_drawn:
            raise ConfigurationError(
                f"A `fraction` of {self._fraction} leaves nothing of {num_parts} instances. Choose "
                "a larger one, or another `fraction_seed`."
            )

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        for name in self.text_fields:
            field = instance[name]
            for text in field if isinstance(field, ListField) else (field,):
                text.token_indexers = self._token_indexers
