"""Text with one sentence per line: the input of biLM training and of ELMo."""

import hashlib
import os
from collections import Counter
from itertools import islice
from typing import Callable, Iterable, Iterator, Sequence, Tuple, Union

from elmo_plugin.corpora.raw_text import RawTextCheck
from elmo_plugin.corpora.tokenizer import Tokenizer, tokenizer_of
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.text_files import FilePath, language_of, numbered_lines


def read_sentences(path: FilePath) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """
    Streams number and words of each line, split at any white space; raw text, which a `DecodedPath`
    names, by `tokenizer_of` its language. Only a line feed ends a line; an empty line is a sentence
    without words. RAM and exceptions are as for `numbered_lines` and `tokenizer_of`.
    """
    language = language_of(path)
    split: Tokenizer = str.split if language is None else tokenizer_of(language)
    # Universal newlines would end a sentence at a lone carriage return.
    for line_number, line in numbered_lines(path, newline="\n"):
        yield line_number, tuple(split(line))


class DigestedText:
    """
    Reads the sentences of `paths` (see `read_sentences`) and digests those read so far. Resumed
    work compares the digest to check that it continues with the same text.
    """

    def __init__(self, paths: Sequence[FilePath]) -> None:
        self._paths = paths
        self._digest = hashlib.sha256()
        #: Numbers of the lines and of the words read so far.
        self.num_lines = self.num_tokens = 0

    @property
    def sha256(self) -> str:
        """The digest of the sentences read so far."""
        return self._digest.hexdigest()

    def sentences(self) -> Iterator[Tuple[int, Tuple[str, ...]]]:
        """
        Yields line numbers and words. Lines are numbered through all files. Warns if tokenised text
        is expected and the text looks raw, see `RawTextCheck`.
        """
        for path in self._paths:
            sentences = read_sentences(path)
            if language_of(path) is None:
                sentences = RawTextCheck().watched(sentences)
            for _, words in sentences:
                self._digest.update(f"{' '.join(words)}\n".encode())
                self.num_lines, self.num_tokens = self.num_lines + 1, self.num_tokens + len(words)
                yield self.num_lines, words

    def read_all(self) -> None:
        """Reads the whole text, for its digest and counts."""
        for _ in self.sentences():
            pass

    def skip(
        self,
        sentences: Iterator[Tuple[int, Tuple[str, ...]]],
        num_lines: int,
        sha256: str,
        folder: Union[str, os.PathLike],
    ) -> None:
        """
        Skips the finished lines of `sentences`. Raises `ConfigurationError`, which names `folder`,
        if their digest is not `sha256`.
        """
        for _ in islice(sentences, num_lines):
            pass
        if num_lines and self.sha256 != sha256:
            raise ConfigurationError(
                f"{folder} holds {num_lines} lines of another text: the first lines of the input "
                f"are not the same. Give the same input, name another output, or delete {folder}."
            )


def count_words(
    paths: Iterable[FilePath], on_progress: Callable[[int], object]
) -> Tuple[Counter, int]:
    """
    Counts the words of texts (see `read_sentences`), and the sentences that are not empty. Calls
    `on_progress(1)` after each line. RAM grows with the distinct words and the longest line.
    """
    words: Counter = Counter()
    num_sentences = 0
    for path in paths:
        for _, sentence in read_sentences(path):
            words.update(sentence)
            num_sentences += bool(sentence)
            on_progress(1)
    return words, num_sentences
