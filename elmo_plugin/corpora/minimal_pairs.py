"""Minimal pairs of sentences in the format of BLiMP (Warstadt et al. 2020): JSON lines."""

import os
from dataclasses import dataclass
from functools import partial
from typing import Iterator, Tuple

from elmo_plugin.corpora.json_lines import field as checked_field
from elmo_plugin.corpora.json_lines import read_objects
from elmo_plugin.corpora.tokenizer import tokenizer_of
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath, language_of

_EXAMPLE = '{"sentence_good": "The owls sleep.", "sentence_bad": "The owls sleeps."}'
_NAMES = ("UID", "linguistics_term", "field")


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in one point, which makes one of them wrong."""

    #: The words.
    good: Tuple[str, ...]
    bad: Tuple[str, ...]
    #: The set of the pair; by default, the name of its file.
    uid: str
    #: What the set tests, and its part of grammar: `linguistics_term` and `field` in the file, or
    #: empty.
    phenomenon: str = ""
    field: str = ""


def read_minimal_pairs(path: FilePath) -> Iterator[MinimalPair]:
    """
    Streams the pairs of a file, split into words by the tokenizer of the path's language, by
    default `en`. Each line has the strings `sentence_good` and `sentence_bad`, which differ, and
    perhaps `UID`, `linguistics_term` and `field`. Any other line raises `ValueError` with file and
    line.
    """
    words = tokenizer_of(language_of(path) or "en")
    name = os.path.basename(os.fspath(path)).split(".")[0]
    for location, found in read_objects(path):
        text = partial(checked_field, kind=str, location=location, example=_EXAMPLE)
        good, bad = (tuple(words(text(found, key))) for key in ("sentence_good", "sentence_bad"))
        expect(good and bad and good != bad, location, "two sentences that differ", found)
        uid, *names = (text({key: "", **found}, key) for key in _NAMES)
        yield MinimalPair(good, bad, uid or name, *names)
