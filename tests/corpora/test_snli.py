import json
from pathlib import Path

import pytest

from elmo_plugin.corpora.minimal_pairs import MinimalPair, read_minimal_pairs
from elmo_plugin.corpora.snli import LABELS, Pair, read_pairs
from elmo_plugin.corpora.tokenizer import treebank_words

CORPUS = Path(__file__).parents[2] / "fixtures/corpora/snli"
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


@pytest.mark.parametrize("split, num_scenes", [("train", 24), ("dev", 8), ("test", 8)])
def test_the_fixture_has_a_hypothesis_of_each_label_for_each_scene(split, num_scenes):
    pairs = list(read_pairs(CORPUS / f"snli_1.0_{split}.jsonl"))
    assert [pair.label for pair in pairs] == list(LABELS) * num_scenes
    assert len({pair.premise for pair in pairs}) == num_scenes
    assert len({pair.pair_id for pair in pairs}) == len(pairs)


def test_parses_of_the_fixture_have_the_words_of_its_sentences():
    text = (CORPUS / "snli_1.0_train.jsonl").read_text(encoding="utf-8")
    parsed = [
        fields
        for fields in map(json.loads, text.splitlines())
        if "sentence1_binary_parse" in fields
    ]
    words = {pair.pair_id: pair for pair in read_pairs(CORPUS / "snli_1.0_train.jsonl")}
    assert len(parsed) == 18
    for fields in parsed:
        pair = words[fields["pairID"]]
        assert list(pair.premise) == treebank_words(fields["sentence1"])
        assert list(pair.hypothesis) == treebank_words(fields["sentence2"])


def test_minimal_pairs_are_read_with_their_groups(write):
    owls = {"sentence_good": "The owls don't sleep.", "sentence_bad": "The owls doesn't sleep."}
    names = {"UID": "owls", "linguistics_term": "agreement", "field": "syntax", "pairID": "0"}
    good = ("The", "owls", "do", "n't", "sleep", ".")
    bad = ("The", "owls", "does", "n't", "sleep", ".")
    path = write(lines({**owls, **names}, owls), "set.jsonl")
    assert list(read_minimal_pairs(path)) == [
        MinimalPair(good, bad, "owls", "agreement", "syntax", "0"),
        MinimalPair(good, bad, "set"),
    ]
