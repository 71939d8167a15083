import pytest

from tests.guide import FIXTURES

CLASSES = ["very negative", "negative", "neutral", "positive", "very positive"]


def test_a_sentence_has_a_label_and_the_probabilities_of_all(predictor):
    output = predictor.predict("A warm, funny film.")
    assert list(output) == ["tokens", "label", "probabilities"]
    assert output["tokens"] == ["A", "warm", ",", "funny", "film", "."]
    assert list(output["probabilities"]) == CLASSES
    assert sum(output["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)
    assert output["label"] == max(output["probabilities"], key=output["probabilities"].get)


def test_trees_keep_their_gold_label(predictor, archive):
    instances = list(archive.validation_dataset_reader.read(FIXTURES / "corpora/sst/test.txt"))
    outputs = predictor.predict_batch_instance(instances)
    assert [output["gold_label"] for output in outputs[:3]] == [
        "very positive",
        "very positive",
        "positive",
    ]
    right = sum(output["gold_label"] == output["label"] for output in outputs)
    archive.model.get_metrics(reset=True)
    archive.model.forward_on_instances(instances)
    accuracy = archive.model.get_metrics(reset=True)["accuracy"]
    assert accuracy == pytest.approx(right / len(outputs))
