"""Reads the vectors of given words from a file in the format of GloVe."""

import os
from itertools import chain
from typing import Container, Tuple, Union

from elmo_plugin.corpora.json_lines import excerpt
from elmo_plugin.util.word_vectors import Vectors, parse_vectors, vector_lines

__all__ = ["read_word_vectors"]


def read_word_vectors(path: Union[str, os.PathLike], words: Container[str]) -> Tuple[Vectors, int]:
    """
    # Parameters

    path : `Union[str, os.PathLike]`
        See `vector_lines`.
    words : `Container[str]`
        The words whose vectors to read: RAM grows with their number, not with the file.

    # Returns

    `Tuple[Vectors, int]`
        The float32 vectors of those words that the file contains, and their width.

    # Raises

    `FileNotFoundError`
        If there is no such file.
    `ValueError`
        If the file is empty or damaged, or a line is not a word and a vector; with file and line.
    """
    lines = vector_lines(os.fspath(path))
    first = next(lines)
    dim = first[1].count(" ")
    if dim == 0:
        raise ValueError(
            f"{first[0]}: expected a word and its vector, separated by spaces, found "
            f"{excerpt(first[1])}."
        )
    found, _ = parse_vectors(chain([first], lines), words, dim)
    return found, dim
