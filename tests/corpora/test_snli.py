import json

import pytest

from elmo_plugin.corpora.minimal_pairs import MinimalPair, read_minimal_pairs
from elmo_plugin.corpora.snli import Pair, read_pairs

PAIR = {"gold_label": "neutral", "sentence1": "A dog (brown) runs.", "sentence2": "It's late."}


def lines(*objects):
    return "\n".join(map(json.dumps, objects)) + "\n"


@pytest.fixture
def read(write):
    return lambda *objects: list(read_pairs(write(lines(*objects))))


def test_words_are_those_of_the_parse_without_brackets_and_escapes(read):
    fields = {
        **PAIR,
        "sentence1_binary_parse": "( ( A ( dog ( -LRB- ( brown -RRB- ) ) ) ) ( ran . ) )",
        "sentence2_binary_parse": r"( ( `` -LSB- 1\/2 \* -RSB- '' ) -LCB- -RCB- )",
        "pairID": "4705552913.jpg#2r1n",
    }
    assert read(fields) == [
        Pair(
            premise=("A", "dog", "(", "brown", ")", "ran", "."),
            hypothesis=('"', "[", "1/2", "*", "]", '"', "{", "}"),
            label="neutral",
            pair_id="4705552913.jpg#2r1n",
        )
    ]


@pytest.mark.parametrize("parse", [{}, {"sentence1_binary_parse": " "}])
def test_without_a_parse_words_are_those_of_the_treebank(read, parse):
    fields = {**PAIR, **parse, "sentence1": "A gray-haired dog (brown) runs.", "sentence2": " "}
    premise = ("A", "gray-haired", "dog", "(", "brown", ")", "runs", ".")
    assert read(fields) == [Pair(premise, (), "neutral")]


def test_pairs_without_a_majority_are_left_out_and_counted(read, caplog):
    caplog.set_level("INFO")
    undecided = {**PAIR, "gold_label": "-"}
    assert len(read(undecided, PAIR, undecided)) == 1
    assert "left out 2 of 3 pairs" in caplog.text


def test_pairs_without_a_gold_label_are_read(read):
    (pair,) = read({key: value for key, value in PAIR.items() if key != "gold_label"})
    assert pair.label is None


def test_minimal_pairs_are_read_with_their_groups(write):
    owls = {"sentence_good": "The owls don't sleep.", "sentence_bad": "The owls doesn't sleep."}
    names = {"UID": "owls", "linguistics_term": "agreement", "field": "syntax", "pairID": "0"}
    good = ("The", "owls", "do", "n't", "sleep", ".")
    bad = ("The", "owls", "does", "n't", "sleep", ".")
    path = write(lines({**owls, **names}, owls), "set.jsonl")
    assert list(read_minimal_pairs(path)) == [
        MinimalPair(good, bad, "owls", "agreement", "syntax"),
        MinimalPair(good, bad, "set"),
    ]
