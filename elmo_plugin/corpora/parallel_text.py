"""Parallel text: two files, in which line N of one is the translation of line N of the other."""

import os
from dataclasses import dataclass
from itertools import zip_longest
from typing import Iterator, Union

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
    # Universal newlines would end a line at a lone carriage return, in one file and not the other.
    lines = (numbered_lines(path, newline="\n") for path in (source_path, target_path))
    for number, (source, target) in enumerate(zip_longest(*lines), start=1):
        for path, line, other in (
            (source_path, source, target_path),
            (target_path, target, source_path),
        ):
            if line is None:
                raise ValueError(
                    f"{path}:{number}: expected as many lines as in {other}, found the end of the "
                    "file. Each line must have its translation in the same line of the other file."
                )
        texts = [line.strip() for _, line in (source, target)]
        if all(texts):
            yield SentencePair(*texts)
        elif any(texts):
            path, other = (source_path, target_path) if not texts[0] else (target_path, source_path)
            raise ValueError(
                f"{path}:{number}: expected a sentence, as in this line of {other}, found none. "
                "Remove the line from both files."
            )
