"""SNLI's pairs of sentences (Bowman et al. 2015), a JSON object a line."""

import json
import logging
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

from elmo_plugin.corpora.json_lines import read_objects
from elmo_plugin.corpora.penn_treebank import plain_word

__all__ = ["LABELS", "Pair", "Tokenize", "read_pairs", "words_of_sentence"]

Tokenize = Callable[[str], List[str]]

logger = logging.getLogger(__name__)

LABELS = ("entailment", "neutral", "contradiction")
# What the corpus says where its five annotators had no majority.
_NO_MAJORITY = "-"


@dataclass(frozen=True)
class Pair:
    """
    A premise, and a sentence that may or may not follow from it.

    # Parameters

    premise, hypothesis : `Tuple[str, ...]`
        Their words; none where the corpus has an empty sentence.
    label : `Optional[str]`, optional (default = `None`)
        One of `LABELS`, where it is known.
    pair_id : `Optional[str]`, optional (default = `None`)
        The pair's name in the corpus, if it has one.
    """

    premise: Tuple[str, ...]
    hypothesis: Tuple[str, ...]
    label: Optional[str] = None
    pair_id: Optional[str] = None


def read_pairs(path: Union[str, os.PathLike], tokenize: Tokenize) -> Iterator[Pair]:
    """
    Streams the pairs of a file. Those on whose label the annotators did not agree are left out;
    their number is logged. In a file without the field `gold_label` pairs have no label.

    # Parameters

    path : `Union[str, os.PathLike]`
        A plain or gzip file, local or a URL. Of each object
        `sentence1`, `sentence2` and `gold_label` are read, and `sentence1_binary_parse`,
        `sentence2_binary_parse` and `pairID` where there are any. Words are those of the parse;
        without one, `tokenize` finds them, by the rules of the Penn Treebank as the parse does.

    # Returns

    `Iterator[Pair]`

    # Raises

    `ValueError`
        If a line is not a JSON object, lacks a sentence or, where others have one, a label, or
        has a label that does not exist, with its place; or if no pair is left.
    """
    num_pairs = num_left_out = 0
    is_labelled = False
    for place, fields in read_objects(path):
        is_labelled = is_labelled if num_pairs else "gold_label" in fields
        num_pairs += 1
        label = _label(fields, place, is_labelled)
        if label == _NO_MAJORITY:
            num_left_out += 1
            continue
        premise, hypothesis = (
            words_of_sentence(fields, place, key, tokenize) for key in ("sentence1", "sentence2")
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
            "%s: left out %d of %d pairs, on whose label there is no majority",
            path,
            num_left_out,
            num_pairs,
        )


def _label(fields: Dict[str, Any], place: str, is_expected: bool) -> Optional[str]:
    if ("gold_label" in fields) != is_expected:
        raise ValueError(
            f'{place}: expected {"a" if is_expected else "no"} "gold_label", as in the pairs '
            f"before, found the fields {sorted(fields)}. Label all pairs of a file or none."
        )
    label = fields.get("gold_label")
    if is_expected and label not in (*LABELS, _NO_MAJORITY):
        raise ValueError(
            f'{place}: expected "gold_label" to be {", ".join(LABELS)}, or {_NO_MAJORITY} '
            f"where there is no majority, found {json.dumps(label)}. Correct it, or leave "
            "the field out of pairs that are to be labelled."
        )
    return label


def words_of_sentence(
    fields: Dict[str, Any], place: str, key: str, tokenize: Tokenize
) -> Tuple[str, ...]:
    """
    The words of one sentence of a pair.

    # Parameters

    fields : `Dict[str, Any]`
        A line of the corpus.
    place : `str`
        Where it stands, for the error.
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
            f'{place}: expected "{key}" with a sentence, found {found}. A pair is an object like '
            '{"gold_label": "neutral", "sentence1": "A dog runs.", "sentence2": "It is late."}.'
        )
    return tuple(tokenize(text))
