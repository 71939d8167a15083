from dataclasses import dataclass
from typing import Any, Dict, List, Sequence

import numpy
import torch

from elmo_plugin.bilm.options import BilmOptions
from elmo_plugin.bilm.vocabulary_file import BEGIN_SENTENCE, END_SENTENCE, UNKNOWN
from elmo_plugin.util.errors import ConfigurationError

# Offsets of the special ids. They follow the ids of the ordinary characters: 256 bytes, or the code
# points that fit into `n_characters`. In the end 1 is added to all ids, because 0 pads sentences.
_BEGIN_SENTENCE, _END_SENTENCE, _BEGIN_WORD, _END_WORD, _PADDING = range(5)
_NUM_SPECIALS = 5
_NUM_BYTES = 256

# The cache of a map is emptied when it has this many words, about 30 MB.
_MAX_CACHED = 100_000


@dataclass
class CharacterMap:
    """
    Converts words to character ids, like bilm-tf's `UnicodeCharsVocabulary`: begin of word,
    characters (cut to fit), end of word, padding. `<S>` and `</S>` are words of one special
    character. The id 0 pads sentences and is not in any word.
    """

    #: Ids per word, including begin and end of word.
    max_characters_per_token: int = 50
    #: Number of ids, 0 included.
    n_characters: int = 262
    #: `byte` for UTF-8 bytes, or `code_point`; code points that do not fit `n_characters` share the
    #: id after the special ids.
    character_unit: str = "byte"

    def __post_init__(self) -> None:
        # Code points need one more id, for unknown ones.
        self._first_special = (
            _NUM_BYTES if self.character_unit == "byte" else self.n_characters - _NUM_SPECIALS - 2
        )
        self._cached: Dict[str, numpy.ndarray] = {}

    def __getstate__(self) -> Dict[str, Any]:
        # The cache is not sent to worker processes.
        return {**self.__dict__, "_cached": {}}

    @classmethod
    def from_options(cls, options: BilmOptions) -> "CharacterMap":
        """The map of a biLM that reads characters."""
        cnn = options.char_cnn
        assert cnn is not None
        return cls(cnn.max_characters_per_token, cnn.n_characters, cnn.character_unit)

    @property
    def padding_id(self) -> int:
        """The id that pads words; sentences are padded with 0."""
        return self._first_special + _PADDING + 1

    def word_ids(self, word: str) -> numpy.ndarray:
        """The ids of a word: shape `(max_characters_per_token,)`, read-only and cached."""
        ids = self._cached.get(word)
        if ids is None:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            ids = self._cached[word] = self._ids(word)
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

    def _ids(self, word: str) -> numpy.ndarray:
        special = {BEGIN_SENTENCE: _BEGIN_SENTENCE, END_SENTENCE: _END_SENTENCE}.get(word)
        units = self._units(word) if special is None else [self._first_special + special]
        ids = numpy.full(self.max_characters_per_token, self._first_special + _PADDING, numpy.int32)
        ids[0] = self._first_special + _BEGIN_WORD
        ids[1 : len(units) + 1] = units
        ids[len(units) + 1] = self._first_special + _END_WORD
        ids += 1
        ids.flags.writeable = False
        return ids

    def _units(self, word: str) -> List[int]:
        space = self.max_characters_per_token - 2
        if self.character_unit == "byte":
            return list(word.encode("utf-8", "ignore")[:space])
        unknown = self._first_special + _NUM_SPECIALS
        return [
            ord(character) if ord(character) < self._first_special else unknown
            for character in word[:space]
        ]


class WordMap(CharacterMap):
    """
    Converts words to ids for token embeddings. A word has one id in place of its character ids, so
    that the same code handles both. The id of `words[i]` is `i + 1`; its embedding is row `i` of
    the weight file. Other words have the id of `<UNK>`, which must be in `words`.
    """

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__(max_characters_per_token=1, n_characters=len(words) + 1)
        self._rows = {word: row for row, word in enumerate(words)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WordMap) and self._rows == other._rows

    def _ids(self, word: str) -> numpy.ndarray:
        row = self._rows.get(word, self._rows[UNKNOWN])
        ids = numpy.array([row + 1], numpy.int32)
        ids.flags.writeable = False
        return ids


def map_of(options: BilmOptions) -> CharacterMap:
    """The map of a biLM. Raises `ConfigurationError` if the words of its embeddings are unknown."""
    if options.char_cnn is not None:
        return CharacterMap.from_options(options)
    if options.words is None:
        raise ConfigurationError(
            "The biLM options have no `char_cnn`, so they need the words of the token embeddings "
            "in `vocabulary`, which is missing. Read the options from a file with vocabulary.txt "
            "beside it."
        )
    return WordMap(options.words)
