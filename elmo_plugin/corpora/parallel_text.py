"""Parallel text: two files, in which line N of one is the translation of line N of the other."""

import os
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Iterator, List, Union

from elmo_plugin.util.text_files import numbered_lines


@dataclass(frozen=True)
class SentencePair:
    """A sentence and its translation, as raw text."""

    source: str
    target: str


def read_sentence_pairs(
    source_path: Union[str, os.PathLike], target_path: Union[str, os.PathLike]
) -> Iterator[SentencePair]:
    """
    Streams the pairs of two files. Lines that are empty in both are skipped.

    # Parameters

    source_path, target_path : `Union[str, os.PathLike]`
        See `find_file`.

    # Raises

    `ValueError`
        If one file has more lines than the other, or a line is empty in one of them; the message
        begins with file and line.
    """
    paths = (source_path, target_path)
    # Universal newlines would end a line at a lone carriage return, in one file and not the other.
    files = (numbered_lines(path, newline="\n") for path in paths)
    for number, lines in enumerate(zip_longest(*files), start=1):
        texts: List[Any] = [line and line[1].strip() for line in lines]
        if all(texts):
            yield SentencePair(*texts)
        elif None in texts or any(texts):
            which = texts.index(None if None in texts else "")
            found = "the end of the file" if texts[which] is None else "an empty line"
            raise ValueError(
                f"{paths[which]}:{number}: expected the translation of this line of "
                f"{paths[1 - which]}, found {found}. Add it, or remove the line from both files."
            )
