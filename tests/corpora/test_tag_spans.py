import random

import pytest

from elmo_plugin.corpora.tag_spans import TagSpan, bio_tags, tags_to_spans

SCHEMES = {
    "IOB1": "I-PER I-PER B-PER O I-LOC I-ORG I-ORG I-ORG",
    "BIO": "B-PER I-PER B-PER O B-LOC B-ORG I-ORG I-ORG",
    "BIOES": "B-PER E-PER S-PER O S-LOC B-ORG I-ORG E-ORG",
    "BIOUL": "B-PER L-PER U-PER O U-LOC B-ORG I-ORG L-ORG",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_need_not_be_named(scheme):
    expected = [
        TagSpan("PER", 0, 1),
        TagSpan("PER", 2, 2),
        TagSpan("LOC", 4, 4),
        TagSpan("ORG", 5, 7),
    ]
    assert tags_to_spans(SCHEMES[scheme].split()) == expected
    assert bio_tags(expected, 8) == SCHEMES["BIO"].split()


# What conlleval's conditions on pairs of tags make of sequences that no scheme allows.
ILL_FORMED = [
    ("an inside after nothing starts", "O I-A I-A O", [("A", 1, 2)]),
    (
        "a type that changes within starts",
        "B-A I-B I-B I-A",
        [("A", 0, 0), ("B", 1, 2), ("A", 3, 3)],
    ),
    ("an end after nothing starts", "O E-A E-A I-A", [("A", 1, 1), ("A", 2, 2), ("A", 3, 3)]),
    ("an inside after an end starts", "B-A E-A I-A E-A", [("A", 0, 1), ("A", 2, 3)]),
    ("an end of another type starts", "B-A E-B O", [("A", 0, 0), ("B", 1, 1)]),
    ("a beginning after a beginning starts", "B-A B-A I-A", [("A", 0, 0), ("A", 1, 2)]),
    ("a beginning without an end ends with the sentence", "O B-A I-A", [("A", 1, 2)]),
    ("after a single nothing goes on", "S-A I-A U-A L-A", [("A", i, i) for i in range(4)]),
    ("a type may hold a hyphen", "B-A-B I-A-B I-A", [("A-B", 0, 1), ("A", 2, 2)]),
    ("no tags", "", []),
]


@pytest.mark.parametrize("rule, tags, expected", ILL_FORMED, ids=[case[0] for case in ILL_FORMED])
def test_ill_formed_tags_mean_what_conlleval_makes_of_them(rule, tags, expected):
    assert tags_to_spans(tags.split()) == [TagSpan(*span) for span in expected]


def test_spans_written_as_tags_read_back():
    random.seed(1)
    for _ in range(200):
        prefixes = random.choices("BIESLUO", k=8)
        tags = [p if p == "O" else f"{p}-{random.choice('AB')}" for p in prefixes]
        spans = tags_to_spans(tags)
        assert tags_to_spans(bio_tags(spans, 8)) == spans
