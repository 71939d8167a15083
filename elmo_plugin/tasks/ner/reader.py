from typing import Any, Dict, Iterable, List, Optional, Sequence

from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.dataset_readers.dataset_utils import to_bioul
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from overrides import overrides

from elmo_plugin.corpora.conll2003 import Sentence, read_sentences
from elmo_plugin.corpora.tag_spans import bio_tags, tags_to_spans
from elmo_plugin.corpora.tagged_words import CONLLU_TAGS, is_conllu, read_conllu
from elmo_plugin.tasks.reader import OwnDataReader
from elmo_plugin.util.errors import check_least, check_one_of

# What tags are: of spans, in BIO and similar schemes, or of words.
KINDS = ("spans", "plain")
# Not "tags" or "labels": a test corpus may hold types that the training corpus lacks, and AllenNLP
# gives namespaces of these names no entry for unknown labels.
ENTITIES = "entities"


@DatasetReader.register("elmo-ner")
@DatasetReader.register("elmo-tagger")
class TagReader(OwnDataReader):
    """
    Reads tagged words in the columns of CoNLL-2003 or, from a file named `.conllu`, in CoNLL-U, one
    instance per sentence in the order of the file. A file of words alone gives instances without
    tags. The metadata keeps the positions of `-DOCSTART-` lines for output in columns.

    # Parameters

    tag_column : `Optional[int]`
        The column of the tags, counted from 1, by default the last one; 3 has the chunks of
        CoNLL-2003.
    tag : `str`
        The column of the tags in CoNLL-U, one of `CONLLU_TAGS`.
    tags : `str`
        `spans`: tags follow IOB1, BIO, BIOES or BIOUL. The reader finds the spans as the scorer of
        CoNLL-2003 does, and writes BIOUL. `plain`: any tags, which stay as they are.
    """

    gold_field = "tags"

    def __init__(
        self,
        tag_column: Optional[int] = None,
        tag: str = "upos",
        tags: str = "spans",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_one_of(CONLLU_TAGS, tag=tag)
        check_one_of(KINDS, tags=tags)
        if tag_column is not None:
            # Column 1 has the words.
            check_least(2, tag_column=tag_column)
        self.tag_column, self._tag, self.has_spans = tag_column, tag, tags == "spans"

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for sentence in self.shard_iterable(self.part(self._sentences(file_path), file_path)):
            yield self.text_to_instance(
                [Token(word) for word in sentence.words],
                sentence.tags or None,
                is_document_start=sentence.is_document_start,
                document=sentence.document,
            )

    def _sentences(self, file_path: str) -> Iterable[Sentence]:
        any_tags = not self.has_spans
        if not is_conllu(file_path):
            return read_sentences(file_path, self.tag_column, any_tags=any_tags)
        sentences = read_conllu(file_path, self._tag, any_tags=any_tags, untagged=True)
        return (Sentence(False, sentence.words, sentence.tags) for sentence in sentences)

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        tokens: List[Token],
        tags: Optional[Sequence[str]] = None,
        *,
        is_document_start: bool = False,
        document: int = 0,
    ) -> Instance:
        """`tags` has one tag per token, of spans in any of the schemes, or is `None` if unknown."""
        text = TextField(tokens)
        fields: Dict[str, Field] = {"tokens": text}
        gold = None
        if tags is not None:
            gold = bio_tags(tags_to_spans(tags), len(tokens)) if self.has_spans else list(tags)
            written = to_bioul(gold, "BIO") if self.has_spans else gold
            fields["tags"] = SequenceLabelField(written, text, ENTITIES)
        fields["metadata"] = MetadataField(
            {
                "words": [token.text for token in tokens],
                "gold_tags": gold,
                "is_document_start": is_document_start,
                "document": document,
            }
        )
        return Instance(fields)
