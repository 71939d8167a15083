"""Counts the words of tokenised text."""

import os
from collections import Counter
from typing import Callable, Iterable, NamedTuple, Optional, Union

from elmo_plugin.corpora.sentence_per_line import read_sentences

__all__ = ["WordCounts", "count_words"]

# Sentences between two calls of `on_progress`.
_PROGRESS_STEP = 10_000


class WordCounts(NamedTuple):
    """How often each word occurs, and in how many sentences of at least one word."""

    words: Counter
    num_sentences: int


def count_words(
    paths: Iterable[Union[str, os.PathLike]],
    on_progress: Optional[Callable[[int], object]] = None,
    errors: str = "strict",
) -> WordCounts:
    """
    Counts the words of text files, one sentence a line. Memory grows with the number of distinct
    words and the longest line.

    # Parameters

    paths : `Iterable[Union[str, os.PathLike]]`
        The files, see `read_sentences`.
    on_progress : `Optional[Callable[[int], object]]`, optional (default = `None`)
        Told now and then how many lines have been read since it was last told.
    errors : `str`, optional (default = `"strict"`)
        What becomes of bytes that are not UTF-8, see `numbered_lines`.

    # Returns

    `WordCounts`

    # Raises

    `FileNotFoundError`
        If a file does not exist.
    `ValueError`
        If a line is not UTF-8 and `errors` is strict, or if a compressed file is damaged.
    """
    words: Counter = Counter()
    num_sentences = num_untold = 0
    for path in paths:
        for _, sentence in read_sentences(path, errors=errors):
            words.update(sentence)
            num_sentences += bool(sentence)
            num_untold += 1
            if num_untold == _PROGRESS_STEP and on_progress is not None:
                on_progress(num_untold)
                num_untold = 0
    if num_untold and on_progress is not None:
        on_progress(num_untold)
    return WordCounts(words, num_sentences)
