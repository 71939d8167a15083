"""SNLI's sentence pairs (Bowman et al. 2015), one JSON object per line."""

import logging
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Optional, Tuple

from elmo_plugin.corpora.json_lines import field, read_objects
from elmo_plugin.corpora.tokenizer import plain_word, treebank_words
from elmo_plugin.util.errors import expect
from elmo_plugin.util.text_files import FilePath

logger = logging.getLogger(__name__)

LABELS = ("entailment", "neutral", "contradiction")
# The label of pairs without a majority among the five annotators.
_NO_MAJORITY = "-"
_EXAMPLE = '{"gold_label": "neutral", "sentence1": "A dog runs.", "sentence2": "It is late."}'


@dataclass(frozen=True)
class Pair:
    """A premise and a hypothesis."""

    #: The words; empty if the sentence is empty.
    premise: Tuple[str, ...]
    hypothesis: Tuple[str, ...]
    #: One of `LABELS`, if it is known.
    label: Optional[str] = None
    pair_id: Optional[str] = None


def read_pairs(path: FilePath) -> Iterator[Pair]:
    """
    Streams the pairs of a file. Each line has `sentence1` and `sentence2`, and perhaps `pairID` and
    the parses `sentence1_binary_parse` and `sentence2_binary_parse`. All lines have a `gold_label`
    or none has. Pairs without a majority label are skipped, and their number is logged. Raises
    `ValueError` if a line lacks a sentence or label, a label is unknown, or no pair has a majority.
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
    found = f'"gold_label": "{_NO_MAJORITY}" in all {num_pairs}'
    expect(num_left_out < num_pairs, path, "pairs with a label", found)
    if num_left_out:
        left_out = "%s: left out %d of %d pairs, which have no majority label"
        logger.info(left_out, path, num_left_out, num_pairs)


def _label(fields: Dict[str, Any], location: str, is_expected: bool) -> Optional[str]:
    label = fields.get("gold_label")
    is_right = label in (*LABELS, _NO_MAJORITY) if is_expected else "gold_label" not in fields
    expected = f'"gold_label" to be {", ".join(LABELS)}, or {_NO_MAJORITY} without a majority'
    advice = "Label all pairs of a file or none."
    expect(is_right, location, expected if is_expected else 'no "gold_label"', fields, advice)
    return label


def words_of_sentence(fields: Dict[str, Any], location: str, key: str) -> Tuple[str, ...]:
    """
    The words of `sentence1` or `sentence2` of a line: the words of its parse, or else its text
    split by `treebank_words`. Raises `ValueError` with the location if there is no such sentence.
    """
    parse = fields.get(f"{key}_binary_parse")
    if isinstance(parse, str) and parse.strip():
        return tuple(plain_word(word) for word in parse.split() if word not in ("(", ")"))
    return tuple(treebank_words(field(fields, key, str, location, _EXAMPLE, "a sentence")))
