import logging
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import torch
from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import LabelField, ListField, MetadataField, TensorField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.conll2012 import Document, read_documents

logger = logging.getLogger(__name__)

# Does not end in "labels": a genre that training never saw is the unknown one.
GENRES = "coref_genres"
# In place of the speaker or the genre where there is none.
UNKNOWN = "-"

Clusters = List[List[Tuple[int, int]]]


@DatasetReader.register("elmo-coref")
class CorefReader(DatasetReader):
    """
    Reads CoNLL-2012 columns; one instance per part of a document, whole, in the order of the file.
    A part without mentions is labelled too: as having none.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read only so many parts.
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
        for document in self.shard_iterable(read_documents(file_path)):
            yield self.text_to_instance(
                [[Token(word) for word in sentence.words] for sentence in document.sentences],
                [speaker for sentence in document.sentences for speaker in sentence.speakers],
                genre_of(document.document_id),
                _clusters(document, file_path),
                document_id=document.document_id,
                part=document.part,
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
    ) -> Instance:
        """
        # Parameters

        sentences : `List[List[Token]]`
            None of them empty.
        speakers : `Optional[Sequence[Optional[str]]]`
            One per token of the document, where they are known.
        genre : `str`, optional (default = `"-"`)
        clusters : `Optional[List[List[Tuple[int, int]]]]`
            Positions in the document of the first and the last token of each mention, where they
            are known. No mention may be in two clusters.
        document_id : `str`, optional (default = `"-"`)
        part : `int`, optional (default = `0`)
        """
        names = [speaker or UNKNOWN for speaker in speakers or [None] * sum(map(len, sentences))]
        # Numbered as they come in.
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        fields: Dict[str, Field] = {
            "sentences": ListField([TextField(sentence) for sentence in sentences]),
            "speakers": TensorField(torch.tensor([numbers[name] for name in names]), -1),
            "genre": LabelField(genre, GENRES),
        }
        if clusters is not None:
            clusters = sorted(sorted(cluster) for cluster in clusters)
            mentions = sorted(
                (*mention, number) for number, cluster in enumerate(clusters) for mention in cluster
            )
            # Shape: (num_mentions, 3)
            tensor = torch.tensor(mentions, dtype=torch.long).reshape(-1, 3)
            fields["gold_mentions"] = TensorField(tensor, -1)
        fields["metadata"] = MetadataField(
            {
                "document_id": document_id,
                "part": part,
                "sentences": [[token.text for token in sentence] for sentence in sentences],
                "speakers": names,
                "genre": genre,
                "clusters": clusters,
            }
        )
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        for sentence in instance["sentences"]:
            sentence.token_indexers = self._token_indexers


def genre_of(document_id: str) -> str:
    """
    The genre that the name of a document tells.

    # Parameters

    document_id : `str`

    # Returns

    `str`
        The first folder if it has two letters, as in OntoNotes: `nw` of `nw/xinhua/00/chtb_0001`.
        Otherwise the folder that the document is in: `news` of `gum/news/GUM_news_asylum`,
        `litbank` of `litbank/940`. A dash if it is in none.
    """
    folders = [folder for folder in document_id.split("/")[:-1] if folder]
    if not folders:
        return UNKNOWN
    return folders[0] if len(folders[0]) == 2 else folders[-1]


def _clusters(document: Document, file_path: str) -> Clusters:
    """The clusters of a document part; a mention stays in the first cluster that has it."""
    clusters: Dict[int, List[Tuple[int, int]]] = {}
    kept: Dict[Tuple[int, int], int] = {}
    first = 0
    for sentence in document.sentences:
        for mention in sentence.mentions:
            span = (first + mention.start, first + mention.end)
            if span in kept:
                logger.warning(
                    "%s:%d: %r is a mention a second time, of cluster %d and now of cluster %d; "
                    "the first counts, and a cluster may be left with one mention",
                    file_path,
                    sentence.line_number + mention.start,
                    " ".join(sentence.words[mention.start : mention.end + 1]),
                    kept[span],
                    mention.cluster_id,
                )
                continue
            kept[span] = mention.cluster_id
            clusters.setdefault(mention.cluster_id, []).append(span)
        first += len(sentence.words)
    return list(clusters.values())
