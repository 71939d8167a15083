import pytest

from elmo_plugin.corpora.snli import LABELS, read_pairs
from tests.guide import FIXTURES

TEST = FIXTURES / "corpora/snli/snli_1.0_test.jsonl"


def test_a_pair_gets_a_label_with_the_probabilities_of_all(predictor):
    output = predictor.predict("A dog runs.", "An animal's asleep.")
    assert list(output["probabilities"]) == list(LABELS)
    assert sum(output["probabilities"].values()) == pytest.approx(1.0)
    assert output["probabilities"][output["label"]] == max(output["probabilities"].values())
    assert output["premise_tokens"] == ["A", "dog", "runs", "."]
    assert output["hypothesis_tokens"] == ["An", "animal", "'s", "asleep", "."]
    assert "pairID" not in output


def test_raw_text_tokens_and_a_line_of_the_corpus_are_the_same_question(predictor):
    raw = {"premise": "A dog (brown) runs.", "hypothesis": "It moves."}
    tokens = {
        "premise_tokens": ["A", "dog", "(", "brown", ")", "runs", "."],
        "hypothesis_tokens": ["It", "moves", "."],
    }
    corpus = {
        "gold_label": "-",
        "sentence1": "",
        "sentence1_binary_parse": "( ( A ( dog ( -LRB- ( brown -RRB- ) ) ) ) ( runs . ) )",
        "sentence2": "It moves.",
        "pairID": "3e",
    }
    alone = [predictor.predict_json(line) for line in (raw, tokens, corpus)]
    assert alone[2].pop("pairID") == "3e"
    assert alone[0] == alone[1] == alone[2]


def test_a_corpus_is_labelled_in_its_order(predictor, archive):
    instances = list(archive.validation_dataset_reader.read(TEST))
    outputs = predictor.predict_batch_instance(instances)
    assert [output["pairID"] for output in outputs] == [pair.pair_id for pair in read_pairs(TEST)]
    right = sum(output["label"] == pair.label for output, pair in zip(outputs, read_pairs(TEST)))
    archive.model.get_metrics(reset=True)
    archive.model.forward_on_instances(instances)
    assert archive.model.get_metrics(reset=True) == {"accuracy": right / len(outputs)}
