"""SNLI's sentence pairs (Bowman et al. 2015), one JSON object per line."""

import json
import logging
import os
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Tuple, Union

from elmo_plugin.corpora.json_lines import read_objects
from elmo_plugin.corpora.penn_treebank import plain_word
from elmo_plugin.corpora.tokenizer import treebank_words

logger = logging.getLogger(__name__)

LABELS = ("entailment", "neutral", "contradiction")
# The label of pairs without a majority among the five annotators.
_NO_MAJORITY = "-"


@dataclass(frozen=True)
class Pair:
    """A premise and a hypothesis."""

    #: Their words; empty if the sentence is empty.
    premise: Tuple[str, ...]
    hypothesis: Tuple[str, ...]
    #: One of `LABELS`, if it is known.
    label: Optional[str] = None
    pair_id: Optional[str] = None


def read_pairs(path: Union[str, os.PathLike]) -> Iterator[Pair]:
    """
    Streams the pairs of a file. Pairs without a majority label are skipped, and their number is
    logged. Sentences without a parse are split by `treebank_words`.

    # Parameters

    path : `Union[str, os.PathLike]`
        See `find_file`. Each line has `sentence1` and `sentence2`, and optionally
        `sentence1_binary_parse`, `sentence2_binary_parse` and `pairID`. Either all lines have a
        `gold_label` or none.

    # Raises

    `ValueError`
        If a line is not a JSON object, lacks a sentence or label, or has an unknown label, with
        file and line; or if no pair has a majority label.
    """
    num_pairs = num_left_out = 0
    is_labelled = False
    for location, fields in read_objects(path):
        is_labelled = is_labelled if num_pairs else "gold_label" in fields
        num_pairs += 1
        label = _label(fields, location, is_labelled)
        if label == _NO_MAJORITY:
            num_left_out += 1
            continue
        premise, hypothesis = (
            words_of_sentence(fields, location, key) for key in ("sentence1", "sentence2")
        )
        yield Pair(premise, hypothesis, label, fields.get("pairID"))
    _report(path, num_pairs, num_left_out)


def _report(path: Union[str, os.PathLike], num_pairs: int, num_left_out: int) -> None:
    if num_left_out == num_pairs:
        raise ValueError(
            f'{path}: expected pairs with a label, found "gold_label": "{_NO_MAJORITY}" in all '
            f"{num_pairs}. Leave the field out of pairs that are to be labelled."
        )
    if num_left_out:
        logger.info(
            "%s: left out %d of %d pairs, which have no majority label",
            path,
            num_left_out,
            num_pairs,
        )


def _label(fields: Dict[str, Any], location: str, is_expected: bool) -> Optional[str]:
    if ("gold_label" in fields) != is_expected:
        raise ValueError(
            f'{location}: expected {"a" if is_expected else "no"} "gold_label", as in the pairs '
            f"before, found the fields {sorted(fields)}. Label all pairs of a file or none."
        )
    label = fields.get("gold_label")
    if is_expected and label not in (*LABELS, _NO_MAJORITY):
        raise ValueError(
            f'{location}: expected "gold_label" to be {", ".join(LABELS)}, or {_NO_MAJORITY} '
            f"where there is no majority, found {json.dumps(label)}. Correct it, or leave "
            "the field out of pairs that are to be labelled."
        )
    return label


def words_of_sentence(fields: Dict[str, Any], location: str, key: str) -> Tuple[str, ...]:
    """
    The words of one sentence of a line: those of its parse, or by `treebank_words` without one.

    # Parameters

    fields : `Dict[str, Any]`
    location : `str`
        The location of the line, for error messages.
    key : `str`
        `sentence1` or `sentence2`.

    # Raises

    `ValueError`
        If there is no such sentence.
    """
    parse = fields.get(f"{key}_binary_parse")
    if isinstance(parse, str) and parse.strip():
        return tuple(plain_word(word) for word in parse.split() if word not in ("(", ")"))
    text = fields.get(key)
    if not isinstance(text, str):
        found = json.dumps(text) if key in fields else f"the fields {sorted(fields)}"
        raise ValueError(
            f'{location}: expected "{key}" with a sentence, found {found}. A pair is an object '
            'like {"gold_label": "neutral", "sentence1": "A dog runs.", "sentence2": "It is '
            'late."}.'
        )
    return tuple(treebank_words(text))
