import logging
from typing import Dict, Iterable, Iterator, List, Optional, Sequence

from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.conll2012 import Frame, Sentence, read_sentences
from elmo_plugin.util.errors import ConfigurationError

logger = logging.getLogger(__name__)

# Not called "labels": a test corpus may hold roles that training never saw, and AllenNLP gives
# namespaces of that name no entry for the unknown.
ROLES = "roles"


@DatasetReader.register("elmo-srl")
class SrlReader(DatasetReader):
    """
    Reads CoNLL-2012 columns; one instance per predicate, in the order of the file.

    A file without predicate columns is read too: the predicates are then the words that have a
    frameset, and the instances have no tags.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    max_tokens : `Optional[int]`, optional (default = `None`)
        Leave longer sentences out, as He et al. (2017) do in training. Their number is logged.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read only so many predicates.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ValueError`
        If a file is malformed; the message names file and line.
    `ConfigurationError`
        If a file holds no predicate.
    """

    def __init__(
        self,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        max_tokens: Optional[int] = None,
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
        self._max_tokens = max_tokens

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        predicates = (
            (sentence, frame, number == len(_frames(sentence)))
            for sentence in self._sentences(file_path)
            for number, frame in enumerate(_frames(sentence), start=1)
        )
        # Processes share predicates out, not sentences, so that each gets the same number.
        for sentence, frame, is_last in self.shard_iterable(predicates):
            yield self.text_to_instance(
                [Token(word) for word in sentence.words],
                frame.predicate_index,
                frame.tags or None,
                lemma=frame.lemma,
                is_last_of_sentence=is_last,
            )

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        tokens: List[Token],
        predicate_index: int,
        tags: Optional[Sequence[str]] = None,
        *,
        lemma: Optional[str] = None,
        is_last_of_sentence: bool = True,
    ) -> Instance:
        """
        # Parameters

        tokens : `List[Token]`
            The sentence.
        predicate_index : `int`
            Position of the predicate's first word.
        tags : `Optional[Sequence[str]]`
            BIO tags, where they are known.
        lemma : `Optional[str]`
            What the predicate is called in CoNLL output; its word when not given.
        is_last_of_sentence : `bool`, optional (default = `True`)
            Whether no further predicate of the same sentence follows; CoNLL output writes a
            sentence when its last predicate is done.
        """
        text = TextField(tokens)
        indicator = [int(position == predicate_index) for position in range(len(tokens))]
        fields: Dict[str, Field] = {
            "tokens": text,
            "predicate_indicator": SequenceLabelField(indicator, text),
        }
        if tags is not None:
            fields["tags"] = SequenceLabelField(list(tags), text, ROLES)
        words = [token.text for token in tokens]
        fields["metadata"] = MetadataField(
            {
                "words": words,
                "predicate_index": predicate_index,
                "lemma": lemma or words[predicate_index],
                "gold_tags": None if tags is None else list(tags),
                "is_last_of_sentence": is_last_of_sentence,
            }
        )
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers

    def _sentences(self, file_path: str) -> Iterator[Sentence]:
        num_predicates = num_left_out = 0
        for sentence in read_sentences(file_path):
            num_predicates += len(_frames(sentence))
            if self._max_tokens is not None and len(sentence.words) > self._max_tokens:
                num_left_out += 1
            else:
                yield sentence
        if not num_predicates:
            raise ConfigurationError(
                f"{file_path} holds no predicate. Expected CoNLL-2012 columns with a column per "
                "predicate, or at least framesets in column 8."
            )
        if num_left_out:
            logger.info(
                "%s: left out %d sentences over %d tokens",
                file_path,
                num_left_out,
                self._max_tokens,
            )


def _frames(sentence: Sentence) -> Sequence[Frame]:
    """The frames of a sentence; without tags where the file marks predicates only."""
    if sentence.frames:
        return sentence.frames
    return [
        Frame(position, sentence.lemmas[position], frameset, tags=())
        for position, frameset in enumerate(sentence.framesets)
        if frameset is not None
    ]
