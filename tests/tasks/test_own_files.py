"""Tasks with files of users: any labels and tags, raw text, and labels that training lacks."""

import json
import logging

import pytest
import torch
from allennlp.data import DatasetReader, Vocabulary
from allennlp.data.data_loaders import MultiProcessDataLoader
from allennlp.predictors import Predictor

from elmo_plugin.tasks.inputs import read_inputs
from elmo_plugin.tasks.model import TaggerModel
from elmo_plugin.tasks.ner.metric import TagAccuracy
from elmo_plugin.util.errors import ConfigurationError
from tests.tasks.small import OWN_CORPORA, build, make_batch, make_reader, plain_reader

each_task = pytest.mark.parametrize("task", OWN_CORPORA)


def words_and_labels(instances):
    return [repr(instance["metadata"].metadata) for instance in instances]


@each_task
@pytest.mark.parametrize("num_workers", [0, 2])
def test_parts_are_the_same_for_any_number_of_workers(task, num_workers):
    path = OWN_CORPORA[task]["train"]
    parts = []
    for is_dev in (False, True):
        reader = plain_reader(task, dev_fraction=0.2, is_dev=is_dev)
        loader = MultiProcessDataLoader(reader, path, batch_size=4, num_workers=num_workers)
        found = words_and_labels(loader.iter_instances())
        alone = words_and_labels(plain_reader(task, dev_fraction=0.2, is_dev=is_dev).read(path))
        assert sorted(found) == sorted(alone)
        parts.append(alone)
    everything = words_and_labels(plain_reader(task).read(path))
    train, dev = parts
    assert sorted(train + dev) == sorted(everything) and not set(train) & set(dev)
    assert len(dev) == pytest.approx(0.2 * len(everything), rel=0.5)


def test_phrases_of_a_tree_are_all_in_one_part():
    path = OWN_CORPORA["classifier"]["train"].parents[1] / "sst/train.txt"
    settings = {"min_phrase_tokens": 2, "dev_fraction": 0.3}
    reader = DatasetReader.by_name("elmo-classifier")
    train = [" ".join(each["metadata"]["words"]) for each in reader(**settings).read(path)]
    for each in reader(dev_fraction=0.3, is_dev=True).read(path):
        assert " ".join(each["metadata"]["words"]) not in train


@pytest.mark.parametrize("dev_fraction, message", [(1.0, "leaves nothing of 46"), (2, "at most 1")])
def test_a_part_that_leaves_nothing_is_refused(dev_fraction, message):
    with pytest.raises(ConfigurationError, match=f"dev_fraction.*{message}"):
        reader = plain_reader("classifier", dev_fraction=dev_fraction)
        list(reader.read(OWN_CORPORA["classifier"]["train"]))


def test_columns_have_the_names_of_the_settings(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("id\tq1\tq2\tsame\n7\tIs it\tDon't go.\t1\n8\t\tx\t0\n")
    reader = DatasetReader.by_name("elmo-pairs")
    first, second = reader(premise="q1", hypothesis="q2", label="same").read(path)
    assert [token.text for token in first["hypothesis"]] == ["Do", "n't", "go", "."]
    assert (first["label"].label, second["label"].label) == ("1", "0")
    # ESIM reads a text without words.
    assert list(second["premise"]) == []
    reader = DatasetReader.by_name("elmo-classifier")
    (instance, *_) = reader(text="q2", label="id").read(path)
    assert instance["label"].label == "7"
    with pytest.raises(ValueError, match="x.tsv:3: expected some text in 'q1', found ''"):
        list(reader(text="q1", label="same").read(path))


@each_task
def test_rows_without_labels_are_read_for_prediction(task, tmp_path, caplog):
    text = {"classifier": "text,b\nA film,1\n", "pairs": "premise,hypothesis\nA,B\n"}
    path = tmp_path / "x.csv"
    path.write_text(text.get(task, "A\nfilm\n"))
    (instance,) = plain_reader(task).read(path)
    assert set(instance.fields) == {*plain_reader(task).text_fields, "metadata"}
    if task != "tagger":
        assert "no label in 'label'; the columns are" in caplog.text


def test_a_text_may_be_a_long_document(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(f"text,label\n{'word ' * 40_000},good\n")
    (instance,) = DatasetReader.by_name("elmo-classifier")().read(str(path))
    assert len(instance["tokens"]) == 40_000


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.csv", "Text,Label\nA film,1\n", "a.csv:1: .* columns text, found the columns Text, L"),
        ("a.csv", "id;text\n1;A film\n", "found the columns id;text. Rename .* by commas"),
        ("a.tsv", "review\nA film\n", "found the columns review. Rename .* by tabs"),
        ("a.csv", "text\n", "found no rows below them$"),
        (
            "a.jsonl",
            '\n{"review": "A film"}\n',
            "a.jsonl:2: expected the fields text, found",
        ),
        ("a.jsonl", "A film\n", "a.jsonl:1: expected a JSON object like"),
        (None, '{"review": "A film"}', "the text:1: .* fields text, found the fields review"),
    ],
)
def test_columns_of_other_names_are_no_text(trained, tmp_path, name, content, message):
    predictor = Predictor.from_archive(trained("classifier"))
    path = tmp_path / str(name)
    path.write_text(content)
    given = (str(path), None, None) if name else ("the text", None, content)
    with pytest.raises(ValueError, match=message):
        list(read_inputs(predictor, *given).items)
    if name == "a.csv":
        assert len(list(read_inputs(predictor, given[0], "text").items)) == content.count("\n")


def test_a_text_without_label_is_one_as_json(trained):
    predictor = Predictor.from_archive(trained("classifier"))
    (instance,) = read_inputs(predictor, "the text", None, '{"text": "A film"}').items
    assert instance["metadata"]["words"] == ["A", "film"]


@pytest.mark.parametrize("text, is_said", [("A\nfilm\n", True), ("A film\nIt\n", False)])
def test_a_word_per_line_is_said(trained, text, is_said):
    predictor = Predictor.from_archive(trained("tagger"))
    said = read_inputs(predictor, "the text", None, text).description
    assert ("every line is one word. If it has a word per line" in said) is is_said


@each_task
def test_raw_text_is_split_by_the_tokenizer_of_the_reader(task, trained):
    archive = trained(task)
    predictor = Predictor.from_archive(archive)
    predictor._dataset_reader = plain_reader(task, tokenize="de")
    predictor._dataset_reader._token_indexers = archive.validation_dataset_reader._token_indexers
    text = "Gibt's z.B. Eis?"
    keys = ("premise", "hypothesis") if task == "pairs" else ("sentence",)
    output = predictor.predict_json(dict.fromkeys(keys, text))
    words = [output[name] for name in output if name.endswith("tokens")]
    assert words == [["Gibt's", "z.B.", "Eis", "?"]] * len(keys)


@each_task
def test_pages_and_predictions_name_no_other_task(task, trained):
    predictor = Predictor.from_archive(trained(task))
    assert trained(task).model.default_predictor == f"elmo-{task}"
    said = f"{predictor.title} {predictor.summary}".lower()
    output = predictor.predict_json(predictor.example)
    for word in ("sentiment", "entit", "entail", "name"):
        assert word not in said and word not in json.dumps(output)
    assert list(predictor.draw(output))


@each_task
def test_a_label_that_training_lacks_is_said_and_counts_as_wrong(task, trained, caplog):
    model = trained(task).model.eval()
    instance = next(iter(trained(task).validation_dataset_reader.read(OWN_CORPORA[task]["dev"])))
    reader = trained(task).validation_dataset_reader
    texts = [instance[name].tokens for name in reader.text_fields]
    label = ["NEW"] * len(texts[0]) if task == "tagger" else "NEW"
    unseen = reader.text_to_instance(*texts, label)
    reader.apply_token_indexers(unseen)
    model.get_metrics(reset=True)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            outputs = model(**make_batch(model.vocab, [unseen]))
    assert outputs["loss"].item() == 0.0
    assert model.get_metrics(reset=True)["accuracy"] == 0.0
    assert caplog.text.count("no example of the label 'NEW'") == 1
    both = model(**make_batch(model.vocab, [unseen, instance]))["loss"]
    alone = model(**make_batch(model.vocab, [instance]))["loss"]
    # The tagger's loss is the mean over sentences, of which one adds nothing.
    torch.testing.assert_close(both * (2 if task == "tagger" else 1), alone)


def test_a_label_of_dev_alone_is_said_after_training(caplog):
    instances = list(make_reader("classifier").read(OWN_CORPORA["classifier"]["train"]))[::8]
    kinds = {instance["label"].label for instance in instances}
    vocab = Vocabulary.from_instances(instances)
    model = build("sst", vocab, type="elmo-classifier")
    one = instances[0]["label"].label
    model(
        **make_batch(vocab, [each for each in instances if each["label"].label == one], elmo=False)
    )
    model.eval()
    model(**make_batch(vocab, instances, elmo=False))
    assert caplog.text.count("Training has no example of the label") == len(kinds) - 1 > 0


def test_plain_tags_follow_each_other_in_any_sequence(trained):
    model = trained("tagger").model
    assert isinstance(model.metric, TagAccuracy)
    assert "@@UNKNOWN@@" not in model.tags and len(model.tags) > 5
    assert not any(scores.any() for scores in TaggerModel.scores_of_sequences(model))
