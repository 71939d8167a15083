import logging
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import torch
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import LabelField, ListField, MetadataField, TensorField, TextField
from overrides import overrides

from elmo_plugin.corpora.conll2012 import Document, read_documents
from elmo_plugin.tasks.coref.metric import Clusters
from elmo_plugin.tasks.reader import TaskReader

logger = logging.getLogger(__name__)

# Does not end in "labels", so that AllenNLP maps a genre that the training corpus lacks to unknown.
GENRES = "coref_genres"
# Stands for a speaker or a genre that is not known.
UNKNOWN = "-"


@DatasetReader.register("elmo-coref")
class CorefReader(TaskReader):
    """
    Reads words, speakers and clusters from CoNLL-2012 columns (see `read_rows`), one instance per
    part of a document, in the order of the file. A part without mentions counts as labelled.
    """

    text_fields = ("sentences",)
    gold_field = "gold_mentions"

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for document in self.shard_iterable(_documents(file_path)):
            yield self.text_to_instance(
                [[Token(word) for word in sentence.words] for sentence in document.sentences],
                [speaker for sentence in document.sentences for speaker in sentence.speakers],
                genre_of(document.document_id),
                _clusters(document),
                document_id=document.document_id,
                part=document.part,
                begin_line=document.begin_line,
            )

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        sentences: List[List[Token]],
        speakers: Optional[Sequence[Optional[str]]] = None,
        genre: str = UNKNOWN,
        clusters: Optional[Clusters] = None,
        *,
        document_id: str = UNKNOWN,
        part: int = 0,
        begin_line: Optional[str] = None,
    ) -> Instance:
        """
        `speakers` has one per token. `clusters` holds first and last token of each mention, counted
        in the document. If a mention is in two clusters, the loss uses the later one, and the
        metric counts both, as the reference scorer does. `begin_line` is for CoNLL output.
        """
        names = [speaker or UNKNOWN for speaker in speakers or [None] * sum(map(len, sentences))]
        # Numbered by first occurrence.
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        fields: Dict[str, Field] = {
            "sentences": ListField([TextField(sentence) for sentence in sentences]),
            "speakers": TensorField(torch.tensor([numbers[name] for name in names]), -1),
            "genre": LabelField(genre, GENRES),
        }
        if clusters is not None:
            # The clusters keep their order: if a mention is in two, the loss uses the later one.
            clusters = [sorted(cluster) for cluster in clusters]
            fields["gold_mentions"] = mentions_of(clusters)
        fields["metadata"] = MetadataField(
            {
                "document_id": document_id,
                "part": part,
                "begin_line": begin_line,
                "sentences": [[token.text for token in sentence] for sentence in sentences],
                "speakers": names,
                "genre": genre,
                "clusters": clusters,
            }
        )
        return Instance(fields)


def mentions_of(clusters: Clusters) -> TensorField:
    """First token, last token and cluster of each mention, sorted: shape `(num_mentions, 3)`."""
    mentions = sorted(
        (*mention, number) for number, cluster in enumerate(clusters) for mention in cluster
    )
    return TensorField(torch.tensor(mentions, dtype=torch.long).reshape(-1, 3), -1)


def genre_of(document_id: str) -> str:
    """
    The genre in a document's name: its first folder if that has two letters (`nw` in OntoNotes'
    `nw/xinhua/00/chtb_0001`), else its last (`news` in `gum/news/GUM_news_asylum`), else a dash.
    """
    folders = [folder for folder in document_id.split("/")[:-1] if folder] or [UNKNOWN]
    return folders[0] if len(folders[0]) == 2 else folders[-1]


def _documents(file_path: str) -> Iterator[Document]:
    """All documents of a file; logs a warning at the end if they have no mentions."""
    has_mentions = False
    for document in read_documents(file_path):
        has_mentions |= any(sentence.mentions for sentence in document.sentences)
        yield document
    if not has_mentions:
        message = "%s: expected mentions in the last column, to train or evaluate, found none"
        logger.warning(message, file_path)


def _clusters(document: Document) -> Clusters:
    """The clusters of a document part, in the order in which the reference scorer numbers them."""
    clusters: Dict[int, List[Tuple[int, int]]] = {}
    first = 0
    for sentence in document.sentences:
        for mention in sentence.mentions:
            span = (first + mention.start, first + mention.end)
            cluster = clusters.setdefault(mention.cluster_id, [])
            if span not in cluster:
                cluster.append(span)
        first += len(sentence.words)
    return list(clusters.values())
