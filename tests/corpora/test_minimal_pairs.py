import json

import pytest

from elmo_plugin.corpora.minimal_pairs import MinimalPair, read_minimal_pairs

GOOD = {"sentence_good": "The owls don't sleep.", "sentence_bad": "The owls doesn't sleep."}


def read(path, *lines):
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return list(read_minimal_pairs(path))


def test_pairs_are_read_with_their_groups(tmp_path):
    names = {"UID": "owls", "linguistics_term": "agreement", "field": "syntax", "pairID": "0"}
    good = ("The", "owls", "do", "n't", "sleep", ".")
    bad = ("The", "owls", "does", "n't", "sleep", ".")
    assert read(tmp_path / "some_set.jsonl", {**GOOD, **names}, GOOD) == [
        MinimalPair(good, bad, "owls", "agreement", "syntax", "0"),
        MinimalPair(good, bad, "some_set"),
    ]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sentence_bad": None}, '"sentence_bad" with a sentence, as in'),
        ({"sentence_good": ["The", "owls"]}, '"sentence_good" with a sentence, as in'),
        ({"sentence_good": " "}, 'at least one word in "sentence_good"'),
        ({"sentence_bad": GOOD["sentence_good"]}, "two sentences that differ"),
        ({"UID": 3}, '"UID" to be a string, found 3'),
    ],
)
def test_what_is_no_pair_is_named_with_its_line(tmp_path, change, message):
    with pytest.raises(ValueError) as error:
        read(tmp_path / "pairs.jsonl", GOOD, {**GOOD, **change})
    assert message in str(error.value) and "pairs.jsonl:2: " in str(error.value)
