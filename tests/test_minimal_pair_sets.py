"""The minimal pairs that come with the project: complete, balanced, in the words of the biLM."""

import json
from collections import Counter
from pathlib import Path

import pytest

from elmo_plugin.bilm.vocabulary_file import read_vocabulary
from elmo_plugin.corpora.minimal_pairs import read_minimal_pairs

PROJECT = Path(__file__).resolve().parents[1]
FILES = sorted((PROJECT / "fixtures/corpora/minimal_pairs").glob("*.jsonl"))
FIELDS = {"morphology", "syntax", "semantics", "syntax_semantics"}
# Number of pairs whose exchange no other pair reverses: only `nobody` licenses `ever`, `somebody`
# does not.
ONE_WAY = {"negative_polarity": 14}


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def words(pair):
    return pair["sentence_good"].split(" "), pair["sentence_bad"].split(" ")


def exchanges(path):
    """How often each word is replaced by each other one; nothing for pairs that differ in order."""
    pairs = [words(pair) for pair in read(path)]
    return Counter(
        (right, wrong)
        for good, bad in pairs
        if sorted(good) != sorted(bad)
        for right, wrong in zip(good, bad)
        if right != wrong
    )


each_set = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def ranks():
    """Place of each word in the vocabulary, where frequent words come first."""
    entries = read_vocabulary(PROJECT / "pretrained/small/vocabulary.txt")
    return {word: rank for rank, (word, _) in enumerate(entries)}


@each_set
def test_fifty_pairs_name_their_set_and_number(path):
    pairs = read(path)
    keys = ["sentence_good", "sentence_bad", "field", "linguistics_term", "UID", "pairID"]
    assert [list(pair) for pair in pairs] == [keys] * 50
    assert [pair["pairID"] for pair in pairs] == [str(number) for number in range(50)]
    assert {pair["UID"] for pair in pairs} == {path.stem}
    assert len({(pair["field"], pair["linguistics_term"]) for pair in pairs}) == 1
    assert pairs[0]["field"] in FIELDS


@each_set
def test_sentences_are_whole_known_and_differ_in_one_word_or_in_word_order(path, ranks):
    read_as = [(list(pair.good), list(pair.bad)) for pair in read_minimal_pairs(path)]
    # The tokenizer leaves the sentences as they are.
    assert read_as == [words(pair) for pair in read(path)]
    for good, bad in read_as:
        for sentence in (good, bad):
            assert [word for word in sentence if word not in ranks] == [], sentence
            assert sentence[0][0].isupper() and sentence[-1] in (".", "?"), sentence
        differences = sum(right != wrong for right, wrong in zip(good, bad, strict=True))
        assert differences == 1 or differences > 1 and sorted(good) == sorted(bad), good


def test_no_sentence_of_the_twenty_sets_occurs_twice():
    assert len(FILES) == 20
    times = Counter(
        pair[kind]
        for path in FILES
        for pair in read(path)
        for kind in ("sentence_good", "sentence_bad")
    )
    assert len(times) == 2000, [sentence for sentence, number in times.items() if number > 1]


@each_set
def test_neither_words_nor_frequency_tell_which_sentence_is_right(path, ranks):
    found = exchanges(path)
    # What is right in one pair is wrong in another.
    reversed_ = Counter({(wrong, right): number for (right, wrong), number in found.items()})
    assert sum((found - reversed_).values()) == ONE_WAY.get(path.stem, 0), found - reversed_
    more_frequent = sum(
        number for (right, wrong), number in found.items() if ranks[right] < ranks[wrong]
    )
    assert more_frequent * 2 == sum(found.values())
