import logging
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import MetadataField, SequenceLabelField, TextField
from overrides import overrides

from elmo_plugin.corpora.conll2012 import Frame, Sentence, read_sentences
from elmo_plugin.tasks.reader import TaskReader
from elmo_plugin.util.errors import ConfigurationError, expect

logger = logging.getLogger(__name__)

# Not "labels": a test corpus may hold roles that the training corpus lacks, and AllenNLP gives
# namespaces of that name no entry for unknown labels.
ROLES = "roles"


@DatasetReader.register("elmo-srl")
class SrlReader(TaskReader):
    """
    Reads CoNLL-2012 columns of a file or folder (see `read_rows`), one instance per predicate in
    the order of the file. Without predicate columns, words with a frameset are predicates, without
    tags. Skips sentences of more than `max_tokens`, like He et al. (2017) in training.
    """

    gold_field = "tags"

    def __init__(self, max_tokens: Optional[int] = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._max_tokens = max_tokens

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        predicates = (
            (sentence, frame, number == len(_frames(sentence)))
            for sentence in self._sentences(file_path)
            for number, frame in enumerate(_frames(sentence), start=1)
        )
        # Predicates are sharded, not sentences, so that each process gets the same number.
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
        `predicate_index` is the position of the predicate's first word. `tags` are BIO. CoNLL
        output names a predicate by `lemma` (default: its word), and has a sentence after its last
        one.
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

    def _sentences(self, file_path: str) -> Iterator[Sentence]:
        # The first sentence with a predicate.
        first: Optional[Sentence] = None
        num_skipped = 0
        for sentence in read_sentences(file_path):
            if _frames(sentence):
                first = first or sentence
                kind = "a column per predicate" if first.frames else "no predicate columns"
                expect(
                    bool(first.frames) == bool(sentence.frames),
                    sentence.location,
                    f"{kind}, as in the sentence of {first.location}",
                    f"{len(sentence.frames)} columns",
                    "All sentences that have framesets need the columns, or none of them.",
                )
            if self._max_tokens is not None and len(sentence.words) > self._max_tokens:
                num_skipped += 1
            else:
                yield sentence
        if num_skipped:
            message = "%s: skipped %d sentences of more than %d tokens"
            logger.info(message, file_path, num_skipped, self._max_tokens)
        if first is None:
            raise ConfigurationError(
                f"{file_path} holds no predicate. Expected CoNLL-2012 columns with a column per "
                "predicate from column 12 on, or at least framesets in column 8."
            )


def _frames(sentence: Sentence) -> Sequence[Frame]:
    """The frames of a sentence, without tags if the file marks predicates only."""
    if sentence.frames:
        return sentence.frames
    return [
        Frame(position, sentence.lemmas[position], tags=())
        for position, frameset in enumerate(sentence.framesets)
        if frameset is not None
    ]
