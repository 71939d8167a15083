from typing import Dict, List, Optional, Union

from allennlp.common.tqdm import Tqdm
from allennlp.data import Vocabulary

from elmo_plugin.bilm.pretraining.text import decoded
from elmo_plugin.bilm.vocabulary_file import (
    COUNTS_NAMESPACE,
    SOFTMAX_NAMESPACE,
    Entry,
    check_specials,
    count_and_choose,
    decode_counts,
    encode_counts,
    read_vocabulary,
)
from elmo_plugin.util.errors import ConfigurationError


@Vocabulary.register("elmo-bilm", constructor="from_text")
class SoftmaxVocabulary(Vocabulary):
    """
    The words that a biLM predicts and, if it has token embeddings, reads: `<S>`, `</S>`, `<UNK>`,
    then the most frequent first. Words are saved in the namespace `softmax_labels`, their counts in
    `softmax_counts_labels`.
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
        Counts the words of `text` (see `Text`, and `DecodedPath` for `decoding_errors`), or reads a
        vocabulary `file` (see `read_vocabulary`). `size` and `min_count`: see `count_and_choose`.
        """
        if (text is None) == (file is None):
            raise ConfigurationError(
                "The elmo-bilm vocabulary expected either `text` to count the words of or a "
                f"vocabulary `file`, found {'neither' if text is None else 'both'}."
            )
        if file is not None:
            return cls._of(read_vocabulary(file, size, min_count))
        assert text is not None
        with Tqdm.tqdm(desc="counting words", unit=" lines") as bar:
            paths = decoded(text, decoding_errors)
            return cls._of(count_and_choose(paths, size, min_count, bar.update))

    @classmethod
    def _of(cls, entries: List[Entry]) -> "SoftmaxVocabulary":
        vocabulary = cls()
        vocabulary.add_tokens_to_namespace([word for word, _ in entries], SOFTMAX_NAMESPACE)
        for entry in encode_counts([count for _, count in entries]):
            vocabulary.add_token_to_namespace(entry, COUNTS_NAMESPACE)
        return vocabulary


def softmax_counts(vocab: Vocabulary) -> Optional[List[int]]:
    """
    The count of each word, or `None` if unknown. A function, because in distributed training
    AllenNLP reloads a `SoftmaxVocabulary` as a plain `Vocabulary`.
    """
    if COUNTS_NAMESPACE not in vocab.get_namespaces():
        return None
    entries = list(vocab.get_index_to_token_vocabulary(COUNTS_NAMESPACE).values())
    return decode_counts(entries, vocab.get_vocab_size(SOFTMAX_NAMESPACE))


def softmax_ids(vocab: Vocabulary) -> Dict[str, int]:
    """The id of each word. Raises `ConfigurationError` for a vocabulary of another type."""
    words: Dict[int, str] = {}
    # Without this check AllenNLP would add the namespace.
    if SOFTMAX_NAMESPACE in vocab.get_namespaces():
        words = vocab.get_index_to_token_vocabulary(SOFTMAX_NAMESPACE)
    check_specials(list(words.values()), f"Namespace `{SOFTMAX_NAMESPACE}` of the vocabulary")
    # AllenNLP replaces this string by a line break when it loads a word; no word contains one.
    return {word.replace("\n", "@@NEWLINE@@"): number for number, word in words.items()}
