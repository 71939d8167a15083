"""Spans of words that the tags of a sentence mark, such as named entities."""

import re
from dataclasses import dataclass
from typing import List, Sequence

from elmo_plugin.util.errors import expect

_TAG = re.compile(r"O|[BIESLU]-.+")
# A span cannot continue after these prefixes.
_LAST = ("E", "L", "S", "U", "O")


@dataclass(frozen=True)
class TagSpan:
    #: Such as `PER`, `ORG`, `LOC` or `MISC` in CoNLL-2003.
    label: str
    #: Positions of the first and last word in the sentence.
    start: int
    end: int


def is_span_tag(tag: str) -> bool:
    """Whether a tag is one of those that `tags_to_spans` decodes."""
    return bool(_TAG.fullmatch(tag))


def check_span_tag(tag: str, location: str, column: object) -> None:
    """Raises `ValueError` with the location if a cell of a `column` is not `is_span_tag`."""
    expected = f"a tag such as O, B-PER or I-PER in column {column}"
    expect(is_span_tag(tag), location, expected, repr(tag))


def tags_to_spans(tags: Sequence[str]) -> List[TagSpan]:
    """
    Decodes the tags of a sentence in IOB1, BIO (IOB2), BIOES or BIOUL, even ill-formed ones.

    `B`, `I` and `O` follow `conlleval`, the scorer of CoNLL-2003: a span starts at `B`, and at an
    `I` after `O` or after another label. It ends before `O` and before the next span. `S` and `E`
    follow [seqeval](https://github.com/chakki-works/seqeval): a span also starts at `S`, and ends
    with `S` or `E`. `U` and `L` of BIOUL are read as `S` and `E`.
    """
    spans: List[TagSpan] = []
    before, label_before = "O", ""
    for position, tag in enumerate(tags):
        prefix, _, label = tag.partition("-")
        if prefix != "O":
            if prefix in ("B", "S", "U") or before in _LAST or label != label_before:
                spans.append(TagSpan(label, position, position))
            else:
                spans[-1] = TagSpan(label, spans[-1].start, position)
        before, label_before = prefix, label
    return spans


def bio_tags(spans: Sequence[TagSpan], num_words: int) -> List[str]:
    """The BIO (IOB2) tags of spans that do not overlap, one per word."""
    tags = ["O"] * num_words
    for span in spans:
        tags[span.start] = f"B-{span.label}"
        for position in range(span.start + 1, span.end + 1):
            tags[position] = f"I-{span.label}"
    return tags
