"""Tokenised text with one sentence per line: the input of biLM training and of ELMo."""

from collections import Counter
from typing import Callable, Iterable, Iterator, NamedTuple, Tuple

from elmo_plugin.util.text_files import FilePath, numbered_lines


class WordCounts(NamedTuple):
    """The count of each word, and the number of sentences that are not empty."""

    words: Counter
    num_sentences: int


def read_sentences(path: FilePath) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """
    Streams number and words of each line, split at any white space. Only a line feed ends a line;
    an empty line is a sentence without words. RAM and exceptions are as for `numbered_lines`.
    """
    # Universal newlines would end a sentence at a lone carriage return.
    for line_number, line in numbered_lines(path, newline="\n"):
        yield line_number, tuple(line.split())


def count_words(
    paths: Iterable[FilePath],
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> WordCounts:
    """
    Counts the words of texts (see `read_sentences`). Calls `on_progress` with 1 after each line.
    RAM grows with the number of distinct words and the longest line.
    """
    words: Counter = Counter()
    num_sentences = 0
    for path in paths:
        for _, sentence in read_sentences(path):
            words.update(sentence)
            num_sentences += bool(sentence)
            on_progress(1)
    return WordCounts(words, num_sentences)
