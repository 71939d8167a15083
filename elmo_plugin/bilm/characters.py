from dataclasses import dataclass
from typing import Any, Dict, List, Sequence, Tuple

import numpy
import torch

from elmo_plugin.bilm.options import BilmOptions, CharacterTableOptions
from elmo_plugin.bilm.vocabulary_file import BEGIN_SENTENCE, END_SENTENCE, UNKNOWN
from elmo_plugin.util.errors import ConfigurationError

# Id 0 pads sentences, the next 256 ids are bytes. `<S>` and `</S>` are single characters.
_BOUNDARIES = {BEGIN_SENTENCE: [257], END_SENTENCE: [258]}
_BEGIN_WORD, _END_WORD, _PADDING_ID = 259, 260, 261
# The same in tables.
_TABLE_BOUNDARIES = {BEGIN_SENTENCE: "<bos>", END_SENTENCE: "<eos>"}

# The cache of a map is emptied when it has this many words, about 30 MB.
_MAX_CACHED = 100_000


@dataclass(eq=False)
class CharacterMap:
    """
    Converts words to character ids, like bilm-tf's `UnicodeCharsVocabulary`: begin of word,
    UTF-8 bytes (cut to fit), end of word, padding. `<S>` and `</S>` are words of one special
    character.
    """

    #: Ids per word, including begin and end of word.
    max_characters_per_token: int = 50
    #: Number of ids, 0 included.
    n_characters: int = 262
    #: The id that fills up words.
    padding_id: int = _PADDING_ID

    def __post_init__(self) -> None:
        self._cached: Dict[str, numpy.ndarray] = {}

    def __getstate__(self) -> Dict[str, Any]:
        # The cache is not sent to worker processes.
        return {**self.__dict__, "_cached": {}}

    def word_ids(self, word: str) -> numpy.ndarray:
        """The ids of a word: shape `(max_characters_per_token,)`, read-only and cached."""
        ids = self._cached.get(word)
        if ids is None:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            ids = self._cached[word] = self._ids(word)
            ids.flags.writeable = False
        return ids

    def sentence_ids(self, words: Sequence[str]) -> numpy.ndarray:
        """Shape `(num_tokens, max_characters_per_token)`. `TypeError` if `words` is a string."""
        if isinstance(words, str):
            raise TypeError(
                f"Expected a sentence as a list of words, found the string {words[:40]!r}."
            )
        if not len(words):
            return numpy.zeros((0, self.max_characters_per_token), dtype=numpy.int32)
        return numpy.stack([self.word_ids(word) for word in words])

    def batch_ids(self, sentences: Sequence[Sequence[str]]) -> torch.Tensor:
        """Shape `(batch_size, num_tokens, max_characters_per_token)`, padded with 0."""
        num_tokens = max((len(words) for words in sentences), default=0)
        shape = (len(sentences), num_tokens, self.max_characters_per_token)
        ids = numpy.zeros(shape, dtype=numpy.int64)
        for row, words in enumerate(sentences):
            ids[row, : len(words)] = self.sentence_ids(words)
        return torch.from_numpy(ids)

    def parts(self, character_ids: torch.Tensor) -> List[Tuple[torch.Tensor, int]]:
        """The columns of ids of one kind, and the number of ids of this kind."""
        return [(character_ids, self.n_characters)]

    def _ids(self, word: str) -> numpy.ndarray:
        content = word.encode("utf-8", "ignore")[: self.max_characters_per_token - 2]
        characters = _BOUNDARIES.get(word) or [byte + 1 for byte in content]
        ids = numpy.full(self.max_characters_per_token, self.padding_id, numpy.int32)
        ids[0] = _BEGIN_WORD
        ids[1 : len(characters) + 1] = characters
        ids[len(characters) + 1] = _END_WORD
        return ids


class WordMap(CharacterMap):
    """
    Converts words to ids for token embeddings. A word has one id in place of its character ids, so
    that the same code handles both. The id of `words[i]` is `i + 1`; its embedding is row `i` of
    the weight file. Other words have the id of `<UNK>`, which must be in `words`.
    """

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(max_characters_per_token=1, n_characters=len(words) + 1)
        self._rows = {word: row for row, word in enumerate(words)}

    def _ids(self, word: str) -> numpy.ndarray:
        return numpy.array([self._rows.get(word, self._rows[UNKNOWN]) + 1], numpy.int32)


class TableMap(CharacterMap):
    """
    Converts words to ids for a table of characters, for one of words, or for both, as
    ELMoForManyLangs does: begin of word, Unicode characters (cut to fit), end of word, padding, and
    in the last column the id of the word. Names for begin and end are swapped there. Words are cut
    before they are looked up, too. `<S>` and `</S>` are read as `<bos>` and `<eos>`, words of one
    special character.
    """

    def __init__(self, options: CharacterTableOptions) -> None:
        self._characters = _ids_of(options.characters)
        self._words = _ids_of(options.words)
        self._longest = options.max_characters_per_token
        num_ids = (self._longest if options.characters else 0) + (1 if options.words else 0)
        super().__init__(num_ids, options.n_characters, self._characters.get("<pad>", 0))

    def parts(self, character_ids: torch.Tensor) -> List[Tuple[torch.Tensor, int]]:
        parts = []
        if self._characters:
            parts.append((character_ids[..., : self._longest], self.n_characters))
        if self._words:
            parts.append((character_ids[..., -1], len(self._words) + 1))
        return parts

    def _ids(self, word: str) -> numpy.ndarray:
        ids = numpy.full(self.max_characters_per_token, self.padding_id, numpy.int32)
        word = _TABLE_BOUNDARIES.get(word, word)[: self._longest - 2]
        if self._characters:
            unknown = self._characters["<oov>"]
            characters = [self._characters.get(character, unknown) for character in word]
            if word in _TABLE_BOUNDARIES.values():
                characters = [self._characters[word]]
            ids[0] = self._characters["<eow>"]
            ids[1 : len(characters) + 1] = characters
            ids[len(characters) + 1] = self._characters["<bow>"]
        if self._words:
            ids[-1] = self._words.get(word, self._words["<oov>"])
        return ids


def _ids_of(entries: Sequence[str]) -> Dict[str, int]:
    return {entry: number for number, entry in enumerate(entries, start=1)}


def map_of(options: BilmOptions) -> CharacterMap:
    """The map of a biLM. Raises `ConfigurationError` if the words of its embeddings are unknown."""
    if isinstance(options.char_cnn, CharacterTableOptions):
        return TableMap(options.char_cnn)
    if options.char_cnn is not None:
        return CharacterMap(options.char_cnn.max_characters_per_token)
    if options.words is None:
        raise ConfigurationError(
            "The biLM options have no `char_cnn`, so they need the words of the token embeddings "
            "in `vocabulary`, which is missing. Read the options from a file with vocabulary.txt "
            "beside it."
        )
    return WordMap(options.words)
