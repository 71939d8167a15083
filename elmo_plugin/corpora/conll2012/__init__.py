"""The columns of the [CoNLL-2012 shared task](https://aclanthology.org/W12-4501/)."""

from elmo_plugin.corpora.conll2012.coreference import (
    Document,
    DocumentSentence,
    Mention,
    format_coreference,
    read_documents,
)
from elmo_plugin.corpora.conll2012.propositions import (
    Frame,
    Sentence,
    format_propositions,
    read_sentences,
)

__all__ = [
    "Document",
    "DocumentSentence",
    "Frame",
    "Mention",
    "Sentence",
    "format_coreference",
    "format_propositions",
    "read_documents",
    "read_sentences",
]
