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
    A part without mentions is labelled too: as having none. Of the columns, words, speakers and
    coreference are read; what the others hold does not matter (see `read_documents`).

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
        num_documents = num_mentions = 0
        for document in self.shard_iterable(read_documents(file_path)):
            num_documents += 1
            num_mentions += sum(len(sentence.mentions) for sentence in document.sentences)
            yield self.text_to_instance(
                [[Token(word) for word in sentence.words] for sentence in document.sentences],
                [speaker for sentence in document.sentences for speaker in sentence.speakers],
                genre_of(document.document_id),
                _clusters(document, file_path),
                document_id=document.document_id,
                part=document.part,
                begin_line=document.begin_line,
            )
        if num_documents and not num_mentions:
            logger.warning(
                "%s: the last column holds no mention: the file can be predicted, but nothing can "
                "be learned from it or scored",
                file_path,
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
        # Parameters

        sentences : `List[List[Token]]`
            None of them empty.
        speakers : `Optional[Sequence[Optional[str]]]`
            One per token of the document, where they are known.
        genre : `str`, optional (default = `"-"`)
        clusters : `Optional[List[List[Tuple[int, int]]]]`
            Positions in the document of the first and the last token of each mention, where they
            are known. Of a mention in two clusters, training learns the later one, and scores count
            both, as the reference scorer does.
        document_id : `str`, optional (default = `"-"`)
        part : `int`, optional (default = `0`)
        begin_line : `Optional[str]`, optional (default = `None`)
            The line that begins the document in its file, for CoNLL output.
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
            # Not sorted themselves: of a mention in two of them, the later one counts.
            clusters = [sorted(cluster) for cluster in clusters]
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
                "begin_line": begin_line,
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
    """The clusters of a document part, in the order in which the reference scorer numbers them."""
    clusters: Dict[int, List[Tuple[int, int]]] = {}
    seen: Dict[Tuple[int, int], int] = {}
    first = 0
    for sentence in document.sentences:
        for mention in sentence.mentions:
            span = (first + mention.start, first + mention.end)
            cluster = clusters.setdefault(mention.cluster_id, [])
            if span in seen:
                logger.warning(
                    "%s:%d: %r is a mention a second time, of cluster %d and now of cluster %d; %s",
                    file_path,
                    sentence.line_number + mention.start,
                    " ".join(sentence.words[mention.start : mention.end + 1]),
                    seen[span],
                    mention.cluster_id,
                    "it counts once"
                    if span in cluster
                    else "scores count both, as the reference scorer does, and training takes the "
                    "one that begins later in the document",
                )
            seen[span] = mention.cluster_id
            if span not in cluster:
                cluster.append(span)
        first += len(sentence.words)
    return list(clusters.values())
