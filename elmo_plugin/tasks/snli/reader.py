from typing import Dict, Iterable, List, Optional

from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import LabelField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.snli import LABELS, read_pairs
from elmo_plugin.tasks.tokenizer import treebank_words


@DatasetReader.register("elmo-snli")
class SnliReader(DatasetReader):
    """
    Reads SNLI's JSON lines; one instance per pair, in the order of the file. Pairs without a
    majority label are left out, pairs without a label are read for prediction.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read only so many pairs.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ValueError`
        If a file is malformed or all its pairs are left out; the message names file and line.
    """

    def __init__(
        self,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        max_instances: Optional[int] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(
            max_instances=max_instances,
            manual_distributed_sharding=True,
            manual_multiprocess_sharding=True,
            serialization_dir=serialization_dir,
        )
        self._token_indexers = token_indexers or {"words": SingleIdTokenIndexer()}

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for pair in self.shard_iterable(read_pairs(file_path, treebank_words)):
            yield self.text_to_instance(
                [Token(word) for word in pair.premise],
                [Token(word) for word in pair.hypothesis],
                pair.label,
                pair_id=pair.pair_id,
            )

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        premise: List[Token],
        hypothesis: List[Token],
        label: Optional[str] = None,
        *,
        pair_id: Optional[str] = None,
    ) -> Instance:
        """
        # Parameters

        premise, hypothesis : `List[Token]`
        label : `Optional[str]`
            `entailment`, `neutral` or `contradiction`, where it is known.
        pair_id : `Optional[str]`
            What the pair is called in its corpus.
        """
        fields: Dict[str, Field] = {
            "premise": TextField(premise),
            "hypothesis": TextField(hypothesis),
        }
        if label is not None:
            # A corpus too small to have all labels does not change what the model can answer.
            fields["label"] = LabelField(LABELS.index(label), skip_indexing=True)
        fields["metadata"] = MetadataField(
            {
                "premise": [token.text for token in premise],
                "hypothesis": [token.text for token in hypothesis],
                "label": label,
                "pair_id": pair_id,
            }
        )
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        for name in ("premise", "hypothesis"):
            instance[name].token_indexers = self._token_indexers
