import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import MetadataField, TextField
from overrides import overrides

from elmo_plugin.corpora.records import SUFFIXES, read_labelled_texts
from elmo_plugin.corpora.sst import read_trees
from elmo_plugin.tasks.reader import KnownLabelField, OwnDataReader
from elmo_plugin.util.errors import check_least, check_one_of, expect
from elmo_plugin.util.text_files import has_suffix

# Names of the treebank's labels 0 to 4. SST-2 leaves out neutral phrases.
_CLASSES = {
    "5-class": ("very negative", "negative", "neutral", "positive", "very positive"),
    "2-class": ("negative", "negative", None, "positive", "positive"),
}


@DatasetReader.register("elmo-sst")
@DatasetReader.register("elmo-classifier")
class TextReader(OwnDataReader):
    """
    Reads labelled texts. Files named `.csv`, `.tsv` and `.jsonl` have an instance per row.

    Other files are trees of the Stanford Sentiment Treebank, one instance per sentence or also per
    phrase. A phrase is an instance without the rest of its sentence. Repeated phrases are kept: of
    93,567 training phrases of four words or more, 405 repeat another, always with the same label.

    # Parameters

    text, label : `str`
        The columns of a row.
    granularity : `str`
        `5-class`, or `2-class`: positive or negative, without neutral phrases (SST-2).
    min_phrase_tokens : `Optional[int]`
        Also read each phrase of at least this many words. The paper trains with 4.
    """

    def __init__(
        self,
        granularity: str = "5-class",
        min_phrase_tokens: Optional[int] = None,
        text: str = "text",
        label: str = "label",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns, self.label_column = (text,), label
        check_one_of(_CLASSES, granularity=granularity)
        if min_phrase_tokens is not None:
            check_least(1, min_phrase_tokens=min_phrase_tokens)
        self._classes = _CLASSES[granularity]
        self._min_phrase_tokens = min_phrase_tokens or sys.maxsize

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        if has_suffix(file_path, *SUFFIXES):
            rows = read_labelled_texts(file_path, self.columns, self.label_column)
            for row in self.shard_iterable(self.part(rows, file_path)):
                tokens = self.tokens(row.texts[0])
                expect(
                    tokens, row.location, f"some text in {self.columns[0]!r}", repr(row.texts[0])
                )
                yield self.text_to_instance(tokens, row.label)
            return
        # Phrases are sharded, not trees, so that each process gets the same number.
        for words, label in self.shard_iterable(self._phrases(file_path)):
            yield self.text_to_instance([Token(word) for word in words], label)

    @overrides(check_signature=False)
    def text_to_instance(self, tokens: List[Token], label: Optional[str] = None) -> Instance:
        fields: Dict[str, Field] = {
            "tokens": TextField(tokens),
            "metadata": MetadataField({"words": [token.text for token in tokens], "label": label}),
        }
        if label is not None:
            fields["label"] = KnownLabelField(label)
        return Instance(fields)

    def _phrases(self, file_path: str) -> Iterator[Tuple[Tuple[str, ...], str]]:
        for tree in self.part(read_trees(file_path), file_path):
            # The first phrase is the sentence.
            for number, phrase in enumerate(tree.phrases):
                num_words, name = phrase.end - phrase.start, self._classes[phrase.label]
                if name is not None and (number == 0 or num_words >= self._min_phrase_tokens):
                    yield tree.words[phrase.start : phrase.end], name


def in_order(names: Iterable[str]) -> List[str]:
    """Sorts names of classes from the most negative to the most positive; others come last."""
    order = _CLASSES["5-class"]
    return sorted(names, key=lambda name: order.index(name) if name in order else len(order))
