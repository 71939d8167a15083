"""Word vectors in the format of GloVe: per line a word and its numbers."""

from typing import Container, Dict, Iterable, List, Optional, Tuple

import numpy

#: Suffix of a namespace with one entry, the number of words that `WordVectors` trains. The files of
#: a vocabulary have no other place for it. AllenNLP adds no unknown word to a namespace of tags.
NUM_TRAINED = "_num_trained_tags"

Vectors = Dict[str, numpy.ndarray]


def parse_vectors(
    lines: Iterable[Tuple[str, str]], words: Container[str], dim: int, max_others: int = 0
) -> Tuple[Vectors, Vectors]:
    """
    # Parameters

    lines : `Iterable[Tuple[str, str]]`
        `file:line` and text of each line, without empty lines and header.
    words : `Container[str]`
        The words whose vectors are wanted.
    dim : `int`
        Width of a vector.
    max_others : `int`, optional (default = `0`)
        Number of other words to read, the first ones in the file.

    # Returns

    `Tuple[Vectors, Vectors]`
        The float32 vectors of `words` that the file contains, and those of other words. If a word
        occurs twice, the first vector is used.

    # Raises

    `ValueError`
        If the first line, or a line that is wanted, is not a word and a vector of this width.
    """
    found: Vectors = {}
    others: Vectors = {}
    for number, (location, line) in enumerate(lines):
        # Some words of GloVe contain spaces, so only the first line shows the width of the file.
        word, *numbers = line.rsplit(" ", dim if number else -1)
        is_wanted = word in words or len(others) < max_others
        if number and (word in found or word in others or not is_wanted):
            continue
        vector = _vector(numbers)
        if vector is None or len(vector) != dim:
            raise ValueError(
                f"{location}: expected a word and the {dim} numbers of its vector, found "
                f"{line[:60]!r}. Is it a file of word vectors, and of this width?"
            )
        if is_wanted:
            (found if word in words else others)[word] = vector
    return found, others


def _vector(numbers: List[str]) -> Optional[numpy.ndarray]:
    try:
        vector = numpy.array(numbers, dtype="float32")
    except ValueError:
        return None
    return vector if numpy.isfinite(vector).all() else None
