from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from allennlp.data import DatasetReader, Field, Instance, Token, TokenIndexer
from allennlp.data.fields import LabelField, MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.sst import read_trees
from elmo_plugin.util.errors import ConfigurationError

LABELS = "labels"
# What the treebank's labels mean, from 0 to 4. In SST-2 the neutral ones are left out.
_CLASSES = {
    "5-class": ("very negative", "negative", "neutral", "positive", "very positive"),
    "2-class": ("negative", "negative", None, "positive", "positive"),
}


@DatasetReader.register("elmo-sst")
class SstReader(DatasetReader):
    """
    Reads trees of the Stanford Sentiment Treebank: sentences, for training their phrases too.

    A phrase is a text of its own, without the sentence around it. What occurs twice is an
    instance twice: of the 93,567 phrases of four words or more in the treebank's training part,
    405 repeat another, always with its label.

    # Parameters

    token_indexers : `Optional[Dict[str, TokenIndexer]]`
        Default: single ids. ELMo needs an `elmo-characters` indexer named `elmo`.
    granularity : `str`, optional (default = `"5-class"`)
        `5-class`, or `2-class`: positive or negative, without what is neutral (SST-2).
    min_phrase_tokens : `Optional[int]`, optional (default = `None`)
        Read every phrase of so many words or more, and each sentence however short; whole
        sentences only when not given. The paper trains on phrases of 4.
    max_instances : `Optional[int]`, optional (default = `None`)
        Read only so many phrases. The first are no sample: the treebank begins with praise.
    serialization_dir : `Optional[str]`
        Given by AllenNLP.

    # Raises

    `ValueError`
        If a file is malformed; the message names file, line and column.
    `ConfigurationError`
        If a setting is impossible.
    """

    def __init__(
        self,
        token_indexers: Optional[Dict[str, TokenIndexer]] = None,
        granularity: str = "5-class",
        min_phrase_tokens: Optional[int] = None,
        max_instances: Optional[int] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(
            max_instances=max_instances,
            manual_distributed_sharding=True,
            manual_multiprocess_sharding=True,
            serialization_dir=serialization_dir,
        )
        if granularity not in _CLASSES:
            raise ConfigurationError(
                f"Expected `granularity` to be one of {sorted(_CLASSES)}, found {granularity!r}."
            )
        if min_phrase_tokens is not None and min_phrase_tokens < 1:
            raise ConfigurationError(
                f"Expected `min_phrase_tokens` to be 1 or more, found {min_phrase_tokens}; leave "
                "it out to read whole sentences only."
            )
        self._token_indexers = token_indexers or {"words": SingleIdTokenIndexer()}
        self._classes = _CLASSES[granularity]
        self._min_phrase_tokens = min_phrase_tokens

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        # Processes share phrases out, not trees, so that each gets the same number.
        for words, label in self.shard_iterable(self._phrases(file_path)):
            yield self.text_to_instance([Token(word) for word in words], label)

    @overrides(check_signature=False)
    def text_to_instance(self, tokens: List[Token], label: Optional[str] = None) -> Instance:
        """
        # Parameters

        tokens : `List[Token]`
            The sentence or phrase.
        label : `Optional[str]`
            The name of its class, where it is known.
        """
        fields: Dict[str, Field] = {
            "tokens": TextField(tokens),
            "metadata": MetadataField({"words": [token.text for token in tokens], "label": label}),
        }
        if label is not None:
            fields["label"] = LabelField(label, LABELS)
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        instance["tokens"].token_indexers = self._token_indexers

    def _phrases(self, file_path: str) -> Iterator[Tuple[Tuple[str, ...], str]]:
        for tree in read_trees(file_path):
            phrases = tree.phrases[:1]
            if self._min_phrase_tokens is not None:
                phrases += tuple(
                    phrase
                    for phrase in tree.phrases[1:]
                    if phrase.end - phrase.start >= self._min_phrase_tokens
                )
            for phrase in phrases:
                name = self._classes[phrase.label]
                if name is not None:
                    yield tree.words[phrase.start : phrase.end], name


def in_order(names: Iterable[str]) -> List[str]:
    """The names of classes, the most negative first."""
    return sorted(names, key=_CLASSES["5-class"].index)
