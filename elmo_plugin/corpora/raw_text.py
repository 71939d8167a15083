"""Tells raw text from tokenised text, in which a punctuation mark is a word of its own."""

import logging
import unicodedata
from functools import lru_cache
from typing import Iterator, Sequence, Tuple

logger = logging.getLogger(__name__)

_NUM_TOKENS = 1000
_LEAST_SHARE = 0.2
# In tokenised text they may end a word only if it is an abbreviation or a name.
_FINAL_MARKS = ".!?…。！？।॥؟۔።։"
# They end a word in raw text only.
_COMMAS = ",，、،፣"
_MARKS = _FINAL_MARKS + _COMMAS
_CLOSING = "\"')]}”’»›」』）"
# Mr., Inc., usw.
_LONGEST_ABBREVIATION = 3


class RawTextCheck:
    """
    Warns, once per process, if text that should be tokenised looks raw. Of its first 1,000 words,
    those count that end in a comma, and those at the end of a line that end in another mark. The
    text looks raw if a fifth of them are not the mark alone.
    """

    def __init__(self) -> None:
        self._num_tokens = self._num_glued = self._num_alone = 0

    def watched(
        self, sentences: Iterator[Tuple[int, Tuple[str, ...]]]
    ) -> Iterator[Tuple[int, Tuple[str, ...]]]:
        """Yields the same sentences."""
        for number, words in sentences:
            if self._num_tokens < _NUM_TOKENS:
                self._count(words[: _NUM_TOKENS - self._num_tokens], len(words))
                if self._num_tokens == _NUM_TOKENS:
                    self._judge()
            yield number, words
        if self._num_tokens < _NUM_TOKENS:
            self._judge()

    def _count(self, words: Sequence[str], num_words: int) -> None:
        self._num_tokens += len(words)
        for position, word in enumerate(words, start=1):
            text = word.rstrip(_CLOSING)
            is_last = position == num_words
            if text.endswith(tuple(_MARKS if is_last else _COMMAS)):
                stem = text.rstrip(_MARKS)
                if not stem:
                    self._num_alone += 1
                elif not (text.endswith(".") and _may_be_abbreviation(stem, num_words)):
                    # Letters, and the vowel signs that follow them in Indic scripts.
                    self._num_glued += unicodedata.category(stem[-1])[0] in "LM"

    def _judge(self) -> None:
        share = self._num_glued / max(1, self._num_glued + self._num_alone)
        if share >= _LEAST_SHARE:
            _warn()


def _may_be_abbreviation(stem: str, num_words: int) -> bool:
    # A line of one word may be from a list of words.
    return num_words == 1 or "." in stem or len(stem) <= _LONGEST_ABBREVIATION


@lru_cache(maxsize=None)
def _warn() -> None:
    logger.warning(
        "The text looks raw: words end in punctuation, as in `chess.` instead of `chess .`, so the "
        "biLM does not know them. If it is raw, add --tokenize and its language, for example "
        "--tokenize en."
    )
