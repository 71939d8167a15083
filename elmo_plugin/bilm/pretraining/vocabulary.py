"""Chooses, from the words of a text, those that a biLM predicts."""

from collections import Counter
from typing import Callable, List, Optional

from elmo_plugin.bilm.pretraining.text import TextPath, find_shards
from elmo_plugin.bilm.vocabulary_file import (
    BEGIN_SENTENCE,
    END_SENTENCE,
    SPECIALS,
    UNKNOWN,
    Entry,
    check_choice,
    check_min_count,
)
from elmo_plugin.corpora.sentence_per_line import WordCounts, count_words
from elmo_plugin.util.errors import ConfigurationError


def count_and_choose(
    text: TextPath,
    size: Optional[int],
    min_count: int,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> List[Entry]:
    """
    Counts the words of a text and chooses those to predict; see `Text`, `count_words` and
    `choose_words` for the parameters, and `numbered_lines` for its exceptions.

    # Raises

    `ConfigurationError`
        If there is no such text, no word in it, or `size` or `min_count` is impossible.
    """
    check_choice(size, min_count)
    shards = find_shards(text)
    counts = count_words(shards, on_progress)
    if not counts.words:
        raise ConfigurationError(f"Expected words, found none in {', '.join(map(str, shards))}.")
    return choose_words(counts, size, min_count)


def choose_words(counts: WordCounts, size: Optional[int] = None, min_count: int = 1) -> List[Entry]:
    """
    The words to predict: `<S>`, `</S>`, `<UNK>`, then the most frequent ones in descending order of
    their counts, words of equal count in alphabetical order.

    # Parameters

    counts : `WordCounts`
        The words of the training text.
    size : `Optional[int]`, optional (default = `None`)
        Maximum number of words, including the first three.
    min_count : `int`, optional (default = `1`)
        Leave out words that occur less often.

    # Returns

    `List[Entry]`
        `<S>` and `</S>` are counted once per sentence, `<UNK>` once for each word left out.
    """
    check_choice(size, min_count)
    given = Counter({BEGIN_SENTENCE: counts.num_sentences, END_SENTENCE: counts.num_sentences})
    # The text itself may contain these words.
    given.update({word: counts.words[word] for word in SPECIALS})
    words = [item for item in counts.words.items() if item[0] not in SPECIALS]
    words.sort(key=lambda item: (-item[1], item[0]))
    most = None if size is None else size - len(SPECIALS)
    if words:
        check_min_count(min_count, words[0][1])
    kept: List[Entry] = [item for item in words[:most] if item[1] >= min_count]
    given[UNKNOWN] += sum(count for _, count in words[len(kept) :])
    return [*((word, given[word]) for word in SPECIALS), *kept]
