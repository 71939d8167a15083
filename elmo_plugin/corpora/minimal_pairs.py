"""Minimal pairs of sentences in the format of BLiMP (Warstadt et al. 2020): JSON lines."""

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Tuple, Union

from elmo_plugin.corpora.json_lines import excerpt, read_objects
from elmo_plugin.corpora.tokenizer import treebank_words

_EXAMPLE = '{"sentence_good": "The owls sleep.", "sentence_bad": "The owls sleeps."}'


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in one point, which makes one of them wrong."""

    #: Their words.
    good: Tuple[str, ...]
    bad: Tuple[str, ...]
    #: The set to which the pair belongs; by default the name of its file.
    uid: str
    #: What the set tests, and the part of grammar to which that belongs: `linguistics_term` and
    #: `field` in the file, empty if they are absent.
    phenomenon: str = ""
    field: str = ""
    #: `pairID` in the file, empty if it is absent.
    pair_id: str = ""


def read_minimal_pairs(path: Union[str, os.PathLike]) -> Iterator[MinimalPair]:
    """
    Streams the pairs of a file, split into words by `treebank_words`.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `numbered_lines`. Each line is an object with `sentence_good` and `sentence_bad`, and
        optionally `UID`, `linguistics_term`, `field` and `pairID`, all of them strings.

    # Raises

    `ValueError`
        If a line is not such an object, a sentence has no words, or both are the same; the message
        names file and line.
    """
    name = os.path.basename(os.fspath(path)).split(".")[0]
    for location, found in read_objects(path):
        good, bad = (_words(found, f"sentence_{kind}", location) for kind in ("good", "bad"))
        if good == bad:
            raise ValueError(
                f"{location}: expected two sentences that differ, found "
                f"{excerpt(' '.join(good))!r} twice."
            )
        yield MinimalPair(
            good,
            bad,
            _text(found, "UID", location) or name,
            _text(found, "linguistics_term", location),
            _text(found, "field", location),
            _text(found, "pairID", location),
        )


def _words(found: Dict[str, Any], key: str, location: str) -> Tuple[str, ...]:
    if not isinstance(found.get(key), str):
        raise ValueError(
            f'{location}: expected "{key}" with a sentence, as in {_EXAMPLE}, found '
            f"{excerpt(json.dumps(found))}."
        )
    words = tuple(treebank_words(found[key]))
    if not words:
        raise ValueError(f'{location}: expected at least one word in "{key}", found none.')
    return words


def _text(found: Dict[str, Any], key: str, location: str) -> str:
    value = found.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f'{location}: expected "{key}" to be a string, found {value!r}.')
    return value
