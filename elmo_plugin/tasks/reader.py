from typing import Any, Dict, Optional, Tuple

from allennlp.data import DatasetReader, Instance, TokenIndexer
from allennlp.data.fields import ListField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.util.errors import ConfigurationError


class TaskReader(DatasetReader):
    """
    The base of the tasks' readers. A reader distributes its instances over processes and workers
    itself, with `shard_iterable`, so that a process builds only the instances it needs.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read at most this many instances of a file.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ConfigurationError`
        If there are other settings: AllenNLP does not check the settings of a reader whose
        constructor takes `**kwargs`.
    """

    #: The fields of an instance that hold text.
    text_fields: Tuple[str, ...] = ("tokens",)

    def __init__(
        self,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        max_instances: Optional[int] = None,
        serialization_dir: Optional[str] = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise ConfigurationError(
                f"{type(self).__name__} has no settings {sorted(unknown)}. Correct or remove them."
            )
        super().__init__(
            max_instances=max_instances,
            manual_distributed_sharding=True,
            manual_multiprocess_sharding=True,
            serialization_dir=serialization_dir,
        )
        self._token_indexers = token_indexers or {"words": SingleIdTokenIndexer()}

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        for name in self.text_fields:
            field = instance[name]
            for text in field if isinstance(field, ListField) else (field,):
                text.token_indexers = self._token_indexers
