"""Word vectors in the format of GloVe: per line a word and its numbers."""

import zipfile
from typing import Container, Dict, Iterable, Iterator, List, Optional, Tuple

import numpy

from elmo_plugin.util.errors import expect, unexpected
from elmo_plugin.util.text_files import find_file, numbered_lines

#: Suffix of a namespace with one entry: the number of words that `WordVectors` trains. Vocabulary
#: files have no other place for it. AllenNLP adds no unknown word to a namespace of tags.
NUM_TRAINED = "_num_trained_tags"

Vectors = Dict[str, numpy.ndarray]


def other_cases(word: str) -> Tuple[str, str]:
    """The forms whose vector a word without one may have: lower case, then title case."""
    return word.lower(), word.title()


def vector_lines(path: str) -> Iterator[Tuple[str, str]]:
    """
    Streams `file:line` and text of each line that is not empty, except a first line with number of
    words and width. `path` is a path or URL of text or gzip. Raises `ValueError`, with file and
    line, for an empty or damaged file or a zip.
    """
    is_zip = zipfile.is_zipfile(find_file(path))
    expect(not is_zip, f"{path}:1", "word vectors", "a zip archive", "Unpack it.")
    is_empty = True
    # Words may contain other line separators of Unicode.
    for number, line in numbered_lines(path, newline="\n"):
        line = line.rstrip()
        is_header = number == 1 and line.count(" ") < 2 and line.replace(" ", "").isdecimal()
        if line and not is_header:
            is_empty = False
            yield f"{path}:{number}", line
    expect(not is_empty, f"{path}:1", "word vectors", "an empty file", "Copy it again.")


def parse_vectors(
    lines: Iterable[Tuple[str, str]],
    words: Container[str],
    dim: Optional[int] = None,
    max_others: int = 0,
) -> Tuple[Vectors, Vectors]:
    """
    The float32 vectors of `words`, and of the first `max_others` other words. RAM grows with their
    number, not with the file. If a word occurs twice, its first vector counts. `lines` are as from
    `vector_lines`; `dim` is the width of a vector, by default of the first one. Raises `ValueError`
    if the first line, or a line that is wanted, is not a word and a vector of this width.
    """
    found: Vectors = {}
    others: Vectors = {}
    width = dim or 0
    for number, (location, line) in enumerate(lines):
        # Some words of GloVe contain spaces, so only the first line shows the width of the file.
        word, *numbers = line.rsplit(" ", width if number else -1)
        width = width or len(numbers)
        is_wanted = word in words or len(others) < max_others
        if number and (word in found or word in others or not is_wanted):
            continue
        vector = _vector(numbers)
        if vector is None or len(vector) != width or not width:
            numbers_of = f"the {width} numbers" if width else "the numbers"
            expected = f"a word and {numbers_of} of its vector, separated by spaces"
            advice = "Is it a file of word vectors, and of this width?"
            raise unexpected(location, expected, repr(line[:60]), advice)
        if is_wanted:
            (found if word in words else others)[word] = vector
    return found, others


def _vector(numbers: List[str]) -> Optional[numpy.ndarray]:
    try:
        vector = numpy.array(numbers, dtype="float32")
    except ValueError:
        return None
    return vector if numpy.isfinite(vector).all() else None
