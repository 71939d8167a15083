"""Counts the words of tokenised text."""

import os
from collections import Counter
from typing import Callable, Iterable, NamedTuple, Union

from elmo_plugin.corpora.sentence_per_line import read_sentences


class WordCounts(NamedTuple):
    """The count of each word, and the number of non-empty sentences."""

    words: Counter
    num_sentences: int


def count_words(
    paths: Iterable[Union[str, os.PathLike]],
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> WordCounts:
    """
    Counts the words of text files, one sentence a line. Memory grows with the number of distinct
    words and the longest line.

    # Parameters

    paths : `Iterable[Union[str, os.PathLike]]`
        See `numbered_lines`, which also documents the exceptions.
    on_progress : `Callable[[int], object]`
        Called after each line with the number of lines since the last call, which is 1.
    """
    words: Counter = Counter()
    num_sentences = 0
    for path in paths:
        for _, sentence in read_sentences(path):
            words.update(sentence)
            num_sentences += bool(sentence)
            on_progress(1)
    return WordCounts(words, num_sentences)
