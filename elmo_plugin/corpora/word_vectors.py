"""Reads the vectors of given words from a file in the format of GloVe."""

import io
import os
import zipfile
from itertools import chain
from typing import Container, Iterator, Tuple, Union, cast

from elmo_plugin.corpora.files import find_file, numbered_lines
from elmo_plugin.corpora.json_lines import excerpt
from elmo_plugin.util.word_vectors import Vectors, parse_vectors

__all__ = ["read_word_vectors"]


def read_word_vectors(path: Union[str, os.PathLike], words: Container[str]) -> Tuple[Vectors, int]:
    """
    # Parameters

    path : `Union[str, os.PathLike]`
        Text, gzip or zip, path or URL; a file within a larger zip is `(archive.zip)#file.txt`. A
        first line with the number of words and the width is skipped.
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
    lines = _vector_lines(os.fspath(path))
    first = next(lines, None)
    if first is None:
        raise ValueError(f"{path}:1: expected word vectors, found an empty file.")
    dim = first[1].count(" ")
    if dim == 0:
        raise ValueError(
            f"{first[0]}: expected a word and its vector, separated by spaces, found "
            f"{excerpt(first[1])}."
        )
    found, _ = parse_vectors(chain([first], lines), words, dim)
    return found, dim


def _vector_lines(path: str) -> Iterator[Tuple[str, str]]:
    """`file:line` and text of each line except the header and empty lines."""
    for number, line in _lines(path):
        line = line.rstrip()
        is_header = number == 1 and line.count(" ") < 2 and line.replace(" ", "").isdecimal()
        if line and not is_header:
            yield f"{path}:{number}", line


def _lines(path: str) -> Iterator[Tuple[int, str]]:
    is_member = path.startswith("(") and ")#" in path
    archive, _, member = path[1:].partition(")#") if is_member else (path, "", "")
    found = find_file(archive)
    if not zipfile.is_zipfile(found):
        # Words may contain other line separators of Unicode.
        yield from numbered_lines(path, newline="\n")
        return
    try:
        with zipfile.ZipFile(found) as opened:
            names = [member] if member else opened.namelist()
            if len(names) > 1:
                raise ValueError(
                    f"{path}: expected one file in the archive, found {len(names)}. Name one of "
                    f"them, such as '({archive})#{names[0]}'."
                )
            with opened.open(names[0] if names else "") as file:
                # `numbered_lines` needs `peek`. A `BufferedReader` reads from any binary file.
                yield from numbered_lines(io.BufferedReader(cast(io.RawIOBase, file)), newline="\n")
    except (KeyError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path}: expected a zip archive with a file of word vectors, found this error: "
            f"{error.args[0]}. Correct the name of the file in it, or copy the archive again."
        ) from error
