from typing import Dict, Iterable, List, Optional, Sequence

from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.dataset_readers.dataset_utils import to_bioul
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.conll2003 import bio_tags, find_entities, read_sentences

# Not called "tags" or "labels": a test corpus may hold types that training never saw, and AllenNLP
# gives namespaces of these names no entry for the unknown.
ENTITIES = "entities"


@DatasetReader.register("elmo-ner")
class NerReader(DatasetReader):
    """
    Reads CoNLL-2003 columns; one instance per sentence, in the order of the file.

    Tags may be those of IOB1, BIO, BIOES or BIOUL, which need not be said: each means what the
    shared task's scorer takes it for. The model learns them as BIOUL. A file of words alone is
    read too; its instances have no tags. No sentence runs over a `-DOCSTART-` line, and where
    these stood is kept for output in columns.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read only so many sentences.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ValueError`
        If a file is malformed; the message names file and line.
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
        for sentence in self.shard_iterable(read_sentences(file_path)):
            yield self.text_to_instance(
                [Token(word) for word in sentence.words],
                sentence.tags or None,
                is_document_start=sentence.is_document_start,
            )

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        tokens: List[Token],
        tags: Optional[Sequence[str]] = None,
        *,
        is_document_start: bool = False,
    ) -> Instance:
        """
        # Parameters

        tokens : `List[Token]`
            The sentence.
        tags : `Optional[Sequence[str]]`
            A tag per token in any of the schemes, where they are known.
        is_document_start : `bool`, optional (default = `False`)
            Whether a new document starts with the sentence.
        """
        text = TextField(tokens)
        fields: Dict[str, Field] = {"tokens": text}
        gold = None
        if tags is not None:
            gold = bio_tags(find_entities(tags), len(tokens))
            fields["tags"] = SequenceLabelField(to_bioul(gold, "BIO"), text, ENTITIES)
        fields["metadata"] = MetadataField(
            {
                "words": [token.text for token in tokens],
                "gold_tags": gold,
                "is_document_start": is_document_start,
            }
        )
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers
