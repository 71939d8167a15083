from pathlib import Path

import pytest
from allennlp.predictors import Predictor

import elmo_plugin.plugin  # noqa: F401

FIXTURES = Path(__file__).parents[3] / "fixtures"
CLASSES = ["very negative", "negative", "neutral", "positive", "very positive"]


@pytest.fixture
def archive(trained):
    return trained("sst")


@pytest.fixture
def predictor(archive):
    return Predictor.from_archive(archive)


def test_a_sentence_has_a_label_and_the_probabilities_of_all(predictor):
    output = predictor.predict("A warm, funny film.")
    assert list(output) == ["tokens", "label", "probabilities"]
    assert output["tokens"] == ["A", "warm", ",", "funny", "film", "."]
    assert list(output["probabilities"]) == CLASSES
    assert sum(output["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)
    assert output["label"] == max(output["probabilities"], key=output["probabilities"].get)


def test_tokens_are_taken_as_they_are(predictor):
    output = predictor.predict_json({"tokens": ["A", "warm ,", "funny film"]})
    assert output["tokens"] == ["A", "warm ,", "funny film"]


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


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"text": "A gem."}', 'expected "sentence" with a text or "tokens"'),
        ('{"sentence": 3}', 'expected "sentence" with a text'),
        ('{"tokens": "A gem."}', '"tokens" to be a list of words'),
        ('{"tokens": ["A", ""]}', "none of them empty"),
        ('{"sentence": "  "}', "at least one word"),
        ('{"tokens": []}', "at least one word"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(predictor, line, message):
    predictor.load_line('{"sentence": "Fine."}\n')
    with pytest.raises(ValueError, match=f"line 2: .*{message}"):
        predictor.load_line(line + "\n")


def test_an_object_without_a_sentence_is_refused(predictor):
    with pytest.raises(ValueError, match='expected "sentence" with a text or "tokens"'):
        predictor.predict_json({"text": "A gem."})
