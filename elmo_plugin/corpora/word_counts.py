"""Counts the words of tokenised text."""

import os
from collections import Counter
from typing import Callable, Iterable, NamedTuple, Optional, Union

from elmo_plugin.corpora.sentence_per_line import read_sentences

# Sentences between two calls of `on_progress`.
_PROGRESS_STEP = 10_000


class WordCounts(NamedTuple):
    """The count of each word, and the number of non-empty sentences."""

    words: Counter
    num_sentences: int


def count_words(
    paths: Iterable[Union[str, os.PathLike]],
    on_progress: Optional[Callable[[int], object]] = None,
    decoding_errors: str = "strict",
) -> WordCounts:
    """
    Counts the words of text files, one sentence a line. Memory grows with the number of distinct
    words and the longest line.

    # Parameters

    paths : `Iterable[Union[str, os.PathLike]]`
        See `read_sentences`.
    on_progress : `Optional[Callable[[int], object]]`, optional (default = `None`)
        Called every 10,000 lines, and at the end, with the number of lines since the last call.
    decoding_errors : `str`, optional (default = `"strict"`)
        See `numbered_lines`, which also documents the exceptions.
    """
    words: Counter = Counter()
    num_sentences = num_unreported = 0
    for path in paths:
        for _, sentence in read_sentences(path, decoding_errors=decoding_errors):
            words.update(sentence)
            num_sentences += bool(sentence)
            num_unreported += 1
            if num_unreported == _PROGRESS_STEP and on_progress is not None:
                on_progress(num_unreported)
                num_unreported = 0
    if num_unreported and on_progress is not None:
        on_progress(num_unreported)
    return WordCounts(words, num_sentences)
