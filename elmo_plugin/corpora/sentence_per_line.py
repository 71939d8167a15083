"""Plain tokenised text, one sentence a line: what biLMs are trained on and ELMo is run over."""

import os
from typing import Iterator, Tuple, Union

from elmo_plugin.corpora.files import numbered_lines

__all__ = ["read_sentences"]


def read_sentences(
    path: Union[str, os.PathLike], *, errors: str = "strict"
) -> Iterator[Tuple[int, Tuple[str, ...]]]:
    """
    Streams the sentences of a text file, so that line `n` of the file is item `n - 1` of the
    stream whatever the line holds: an empty line is a sentence of no words, and only a line feed
    ends a line. Memory grows with the longest line.

    # Parameters

    path : `Union[str, os.PathLike]`
        The file: plain or gzip, local or a URL. When only the
        file's `.gz` twin exists, that is read.
    errors : `str`, optional (default = `"strict"`)
        What becomes of bytes that are not UTF-8, see `numbered_lines`.

    # Returns

    `Iterator[Tuple[int, Tuple[str, ...]]]`
        The line's number, counted from 1, and its words: what stands between white space of any
        kind, as `str.split` sees it.

    # Raises

    `FileNotFoundError`
        If neither the local file nor its `.gz` twin exists.
    `ValueError`
        If a line is not UTF-8 and `errors` is strict, or if a compressed file is damaged.
    """
    # Universal newlines would end a sentence at a lone carriage return.
    for line_number, line in numbered_lines(path, newline="\n", errors=errors):
        yield line_number, tuple(line.split())
