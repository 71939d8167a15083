"""Tokenised text with one sentence per line: the input of biLM training and of ELMo."""

import os
from typing import Iterator, Tuple, Union

from elmo_plugin.util.text_files import numbered_lines


def read_sentences(path: Union[str, os.PathLike]) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """
    Streams the lines of a file as words, split at any white space. Every line is a sentence, an
    empty one has no words, and only a line feed ends a line. Memory grows with the longest line.

    # Parameters

    path
        See `numbered_lines`, which also documents the exceptions.

    # Returns

    `Iterator[Tuple[int, Tuple[str, ...]]]`
        The line number, counted from 1, and the words.
    """
    # Universal newlines would end a sentence at a lone carriage return.
    for line_number, line in numbered_lines(path, newline="\n"):
        yield line_number, tuple(line.split())
