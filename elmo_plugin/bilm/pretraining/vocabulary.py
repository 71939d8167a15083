"""Chooses the words that a biLM predicts from a text."""

from typing import Callable, List, Optional

from elmo_plugin.bilm.pretraining.text import TextPath, check_decoding_errors, find_shards
from elmo_plugin.bilm.vocabulary_file import Entry, check_choice, choose_words
from elmo_plugin.corpora.word_counts import count_words
from elmo_plugin.util.errors import ConfigurationError


def count_and_choose(
    text: TextPath,
    size: Optional[int],
    min_count: int,
    decoding_errors: str = "strict",
    on_progress: Optional[Callable[[int], object]] = None,
) -> List[Entry]:
    """
    Counts the words of a text and chooses those to be predicted.

    # Parameters

    text : `TextPath`
        See `Text`.
    size, min_count : `Optional[int]`, `int`
        See `choose_words`.
    decoding_errors : `str`, optional (default = `"strict"`)
        See `Text`.
    on_progress : `Optional[Callable[[int], object]]`, optional (default = `None`)
        Called now and then with the number of lines read since the last call.

    # Raises

    `ConfigurationError`
        If there is no such text, no word in it, or if `size` or `min_count` are impossible.
    `ValueError`
        If a line is not UTF-8 and `decoding_errors` is strict, or if a compressed file is damaged.
    """
    check_choice(size, min_count)
    check_decoding_errors(decoding_errors)
    shards = find_shards(text)
    counts = count_words(shards, on_progress, decoding_errors)
    if not counts.words:
        raise ConfigurationError(f"Expected words, found none in {', '.join(shards)}.")
    return choose_words(counts, size, min_count)
