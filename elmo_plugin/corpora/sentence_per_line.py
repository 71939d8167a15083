"""Tokenised text with one sentence per line: the input of biLM training and of ELMo."""

from collections import Counter
from typing import Callable, Iterable, Iterator, NamedTuple, Tuple

from elmo_plugin.util.text_files import FilePath, numbered_lines


class WordCounts(NamedTuple):
    """The count of each word, and the number of non-empty sentences."""

    words: Counter
    num_sentences: int


def read_sentences(path: FilePath) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """
    Streams the number and the words of each line, split at any white space. Every line is a
    sentence, an empty one has no words, and only a line feed ends a line. Memory grows with the
    longest line. For file and exceptions see `numbered_lines`.
    """
    # Universal newlines would end a sentence at a lone carriage return.
    for line_number, line in numbered_lines(path, newline="\n"):
        yield line_number, tuple(line.split())


def count_words(
    paths: Iterable[FilePath],
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> WordCounts:
    """
    Counts the words of texts, see `read_sentences`. Memory grows with the number of distinct words
    and the longest line.

    # Parameters

    paths : `Iterable[FilePath]`
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
