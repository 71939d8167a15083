from typing import Dict, List, Optional, Union

from allennlp.common.tqdm import Tqdm
from allennlp.data import Vocabulary

from elmo_plugin.bilm.io.predicted_words import (
    COUNTS_NAMESPACE,
    SOFTMAX_NAMESPACE,
    counts_of,
    entries_of,
)
from elmo_plugin.bilm.pretraining.vocabulary import count_and_choose
from elmo_plugin.bilm.vocabulary_file import Entry, check_specials, read_vocabulary
from elmo_plugin.util.errors import ConfigurationError


@Vocabulary.register("elmo-bilm", constructor="from_text")
class SoftmaxVocabulary(Vocabulary):
    """
    The words that a biLM predicts, most frequent first: what sampled softmax draws from.

    Ids 0, 1 and 2 are `<S>`, `</S>` and `<UNK>`. They stand in the namespace `softmax_labels`; a
    second one, `softmax_counts_labels`, holds the counts, so that these too outlive saving and
    loading. What is read goes by characters and needs no vocabulary, unless the biLM has token
    embeddings: those are of these words.
    """

    @classmethod
    def from_text(
        cls,
        text: Optional[Union[str, List[str]]] = None,
        file: Optional[str] = None,
        size: Optional[int] = None,
        min_count: int = 1,
        decoding_errors: str = "strict",
    ) -> "SoftmaxVocabulary":
        """
        # Parameters

        text : `Optional[Union[str, List[str]]]`
            Text whose words are counted: a file, a folder, a pattern, or several of them.
        file : `Optional[str]`
            Instead of `text`: a file that `allennlp elmo-vocabulary` has written, or one of
            bilm-tf's.
        size : `Optional[int]`, optional (default = `None`)
            How many words to keep at most, the three special ones included.
        min_count : `int`, optional (default = `1`)
            Leave out words that occur less often.
        decoding_errors : `str`, optional (default = `"strict"`)
            What becomes of bytes of `text` that are not UTF-8, see `Text`.

        # Raises

        `ConfigurationError`
            If not exactly one of `text` and `file` is given, or if what it names cannot be used.
        """
        if (text is None) == (file is None):
            raise ConfigurationError(
                "The elmo-bilm vocabulary expected either `text` to count the words of or a "
                f"vocabulary `file`, found {'both' if text else 'neither'}."
            )
        if file is not None:
            return cls._of(read_vocabulary(file, size, min_count))
        assert text is not None
        with Tqdm.tqdm(desc="counting words", unit=" lines") as bar:
            return cls._of(count_and_choose(text, size, min_count, decoding_errors, bar.update))

    @property
    def counts(self) -> Optional[List[int]]:
        """How often each word occurs, see `softmax_counts`."""
        return softmax_counts(self)

    @classmethod
    def _of(cls, entries: List[Entry]) -> "SoftmaxVocabulary":
        vocabulary = cls()
        vocabulary.add_tokens_to_namespace([word for word, _ in entries], SOFTMAX_NAMESPACE)
        for entry in entries_of([count for _, count in entries]):
            vocabulary.add_token_to_namespace(entry, COUNTS_NAMESPACE)
        return vocabulary


def softmax_counts(vocab: Vocabulary) -> Optional[List[int]]:
    """
    How often each word of a softmax vocabulary occurs. Takes any `Vocabulary`, because processes
    that train together get one that AllenNLP has saved and loaded as its own.

    # Returns

    `Optional[List[int]]`
        One per word; `None` if they are not known.
    """
    if COUNTS_NAMESPACE not in vocab.get_namespaces():
        return None
    entries = list(vocab.get_index_to_token_vocabulary(COUNTS_NAMESPACE).values())
    return counts_of(entries, vocab.get_vocab_size(SOFTMAX_NAMESPACE))


def softmax_ids(vocab: Vocabulary) -> Dict[str, int]:
    """
    The ids of a softmax vocabulary by word.

    # Raises

    `ConfigurationError`
        If the vocabulary is another one.
    """
    words: Dict[int, str] = {}
    # Asked for directly, a namespace that is not there would come into being.
    if SOFTMAX_NAMESPACE in vocab.get_namespaces():
        words = vocab.get_index_to_token_vocabulary(SOFTMAX_NAMESPACE)
    check_specials(list(words.values()), f"Namespace `{SOFTMAX_NAMESPACE}` of the vocabulary")
    # AllenNLP reads this word back from its files as a line break, which no word holds.
    return {word.replace("\n", "@@NEWLINE@@"): number for number, word in words.items()}
