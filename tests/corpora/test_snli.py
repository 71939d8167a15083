import json
from pathlib import Path

import pytest

from elmo_plugin.corpora.snli import LABELS, Pair, read_pairs
from elmo_plugin.corpora.tokenizer import treebank_words

CORPUS = Path(__file__).parents[2] / "fixtures/corpora/snli"
PAIR = {"gold_label": "neutral", "sentence1": "A dog (brown) runs.", "sentence2": "It's late."}


def read(tmp_path, *lines):
    path = tmp_path / "x.jsonl"
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return list(read_pairs(path))


def test_words_are_those_of_the_parse_without_brackets_and_escapes(tmp_path):
    fields = {
        **PAIR,
        "sentence1_binary_parse": "( ( A ( dog ( -LRB- ( brown -RRB- ) ) ) ) ( ran . ) )",
        "sentence2_binary_parse": r"( ( `` -LSB- 1\/2 \* -RSB- '' ) -LCB- -RCB- )",
        "pairID": "4705552913.jpg#2r1n",
    }
    assert read(tmp_path, fields) == [
        Pair(
            premise=("A", "dog", "(", "brown", ")", "ran", "."),
            hypothesis=('"', "[", "1/2", "*", "]", '"', "{", "}"),
            label="neutral",
            pair_id="4705552913.jpg#2r1n",
        )
    ]


@pytest.mark.parametrize("parse", [{}, {"sentence1_binary_parse": " "}])
def test_without_a_parse_words_are_those_of_the_treebank(tmp_path, parse):
    fields = {**PAIR, **parse, "sentence1": "A gray-haired dog (brown) runs."}
    assert read(tmp_path, fields) == [
        Pair(
            premise=("A", "gray-haired", "dog", "(", "brown", ")", "runs", "."),
            hypothesis=("It", "'s", "late", "."),
            label="neutral",
        )
    ]


def test_pairs_without_a_majority_are_left_out_and_counted(tmp_path, caplog):
    caplog.set_level("INFO")
    undecided = {**PAIR, "gold_label": "-"}
    assert len(read(tmp_path, undecided, PAIR, undecided)) == 1
    assert "left out 2 of 3 pairs" in caplog.text


def test_pairs_without_a_gold_label_are_read(tmp_path):
    unlabelled = {key: value for key, value in PAIR.items() if key != "gold_label"}
    (pair,) = read(tmp_path, unlabelled)
    assert pair.label is None
    with pytest.raises(ValueError, match='x.jsonl:2: expected no "gold_label", as in the pairs'):
        read(tmp_path, unlabelled, PAIR)


def test_an_empty_sentence_has_no_words(tmp_path):
    (pair,) = read(tmp_path, {**PAIR, "sentence2": " "})
    assert pair.hypothesis == ()


@pytest.mark.parametrize(
    "line, message",
    [
        (
            {**PAIR, "gold_label": "entails"},
            'expected "gold_label" to be entailment, neutral, contradiction, or - .*"entails"',
        ),
        ({**PAIR, "gold_label": None}, 'expected "gold_label" .* found null.*leave the field out'),
        ({**PAIR, "gold_label": ["neutral"]}, 'expected "gold_label" .* found \\["neutral"\\]'),
        (
            {"sentence1": "A dog.", "sentence2": "A cat.", "gold_lable": "neutral"},
            "expected a \"gold_label\", as in the pairs before, found .*'gold_lable'.*all pairs",
        ),
        ({**PAIR, "sentence2": None}, 'expected "sentence2" with a sentence, found null'),
        (
            {"gold_label": "neutral", "sentence1": "A dog."},
            r"expected \"sentence2\" .* found the fields \['gold_label', 'sentence1'\].*A pair is",
        ),
        (json.dumps(PAIR)[:40], "expected a JSON object, found .*cut off"),
        ("[1]", "expected a JSON object"),
    ],
)
def test_a_malformed_line_is_named_by_file_and_number(tmp_path, line, message):
    with pytest.raises(ValueError, match=f"x.jsonl:3: {message}"):
        read(tmp_path, PAIR, "", line)


def test_a_file_without_a_usable_pair_is_refused(tmp_path):
    with pytest.raises(ValueError, match='x.jsonl: expected .* "-" in all 2'):
        read(tmp_path, *[{**PAIR, "gold_label": "-"}] * 2)


@pytest.mark.parametrize("split, num_scenes", [("train", 24), ("dev", 8), ("test", 8)])
def test_the_fixture_has_a_hypothesis_of_each_label_for_each_scene(split, num_scenes):
    pairs = list(read_pairs(CORPUS / f"snli_1.0_{split}.jsonl"))
    assert [pair.label for pair in pairs] == list(LABELS) * num_scenes
    assert len({pair.premise for pair in pairs}) == num_scenes
    assert len({pair.pair_id for pair in pairs}) == len(pairs)


def test_parses_of_the_fixture_have_the_words_of_its_sentences():
    lines = (CORPUS / "snli_1.0_train.jsonl").read_text(encoding="utf-8").splitlines()
    parsed = [fields for fields in map(json.loads, lines) if "sentence1_binary_parse" in fields]
    words = {pair.pair_id: pair for pair in read_pairs(CORPUS / "snli_1.0_train.jsonl")}
    assert len(parsed) == 18
    for fields in parsed:
        pair = words[fields["pairID"]]
        assert list(pair.premise) == treebank_words(fields["sentence1"])
        assert list(pair.hypothesis) == treebank_words(fields["sentence2"])
