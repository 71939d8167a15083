from typing import Any, Dict, Iterable, List, Optional, Sequence

from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.dataset_readers.dataset_utils import to_bioul
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from overrides import overrides

from elmo_plugin.corpora.conll2003 import read_sentences
from elmo_plugin.corpora.tag_spans import bio_tags, tags_to_spans
from elmo_plugin.tasks.reader import TaskReader
from elmo_plugin.util.errors import check_least

# Not "tags" or "labels": a test corpus may hold types that the training corpus lacks, and AllenNLP
# gives namespaces of these names no entry for unknown labels.
ENTITIES = "entities"


@DatasetReader.register("elmo-ner")
class NerReader(TaskReader):
    """
    Reads CoNLL-2003 columns, one instance per sentence in the order of the file. Tags may follow
    IOB1, BIO, BIOES or BIOUL. The reader finds the entities as the shared task's scorer does, and
    writes BIOUL. A file of words alone gives instances without tags. The metadata keeps the
    positions of `-DOCSTART-` lines for output in columns. `tag_column`, counted from 1, is by
    default the last one; 3 has the chunks of CoNLL-2003.
    """

    label_field = "tags"

    def __init__(self, tag_column: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if tag_column is not None:
            # Column 1 has the words.
            check_least(2, tag_column=tag_column)
        self._tag_column = tag_column

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for sentence in self.shard_iterable(read_sentences(file_path, self._tag_column)):
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
        """`tags` has one tag per token in any of the schemes, or is `None` if unknown."""
        text = TextField(tokens)
        fields: Dict[str, Field] = {"tokens": text}
        gold = None
        if tags is not None:
            gold = bio_tags(tags_to_spans(tags), len(tokens))
            fields["tags"] = SequenceLabelField(to_bioul(gold, "BIO"), text, ENTITIES)
        fields["metadata"] = MetadataField(
            {
                "words": [token.text for token in tokens],
                "gold_tags": gold,
                "is_document_start": is_document_start,
            }
        )
        return Instance(fields)
