import pytest

from elmo_plugin.corpora.conll2003 import read_sentences
from tests.guide import FIXTURES
from tests.tasks.ner.test_metric import conlleval

TEST = FIXTURES / "corpora/ner/test.conll"


def test_entities_have_type_place_and_text(make):
    words = ["Ada", "Lind", "lives", "in", "Oslo"]
    metadata = {"words": words, "gold_tags": None, "is_document_start": False}
    tags = ["B-PER", "L-PER", "O", "O", "U-LOC"]
    assert make()._described({"tags": tags, "metadata": metadata}) == {
        "tokens": words,
        "tags": ["B-PER", "I-PER", "O", "O", "B-LOC"],
        "entities": [
            {"type": "PER", "start": 0, "end": 1, "text": "Ada Lind"},
            {"type": "LOC", "start": 4, "end": 4, "text": "Oslo"},
        ],
        "gold_tags": None,
        "is_document_start": None,
    }


def test_a_sentence_is_tokenised(make):
    output = make().predict("Ada Lind isn't here.")
    assert output["tokens"] == ["Ada", "Lind", "is", "n't", "here", "."]
    assert len(output["tags"]) == 6
    assert set(output) == {"tokens", "tags", "entities"}


def test_a_corpus_is_written_as_conlleval_reads_it(make, archive, tmp_path):
    predictor = make(output_format="conll")
    instances = list(archive.validation_dataset_reader.read(TEST))
    outputs = [
        output
        for first in range(0, len(instances), 5)
        for output in predictor.predict_batch_instance(instances[first : first + 5])
    ]
    path = tmp_path / "out.conll"
    path.write_text("".join(predictor.dump_line(output) for output in outputs))
    for ours, theirs in zip(read_sentences(path), read_sentences(TEST), strict=True):
        assert (ours.words, ours.is_document_start) == (theirs.words, theirs.is_document_start)
    correct, found, gold, _ = conlleval(path.read_text().splitlines())
    scores = archive.model.get_metrics(reset=True)
    assert scores["precision-overall"] == pytest.approx(correct / found)
    assert scores["recall-overall"] == pytest.approx(correct / gold)
    assert gold == 36 and correct > 18


def test_words_alone_are_written_with_their_predicted_tags(make, archive, tmp_path):
    path = tmp_path / "x.conll"
    path.write_text("-DOCSTART-\n\n" + "\n".join("Ada Lind lives in London .".split()) + "\n")
    predictor = make(output_format="conll")
    (instance,) = archive.validation_dataset_reader.read(path)
    output = predictor.predict_instance(instance)
    assert "gold_tags" not in output
    first, empty, *rows, last = predictor.dump_line(output).splitlines()
    assert (first, empty, last) == ("-DOCSTART- O", "", "")
    assert [row.split() for row in rows] == [
        list(pair) for pair in zip(output["tokens"], output["tags"])
    ]


def test_sentences_are_written_as_columns_too(make):
    predictor = make(output_format="conll")
    output = predictor.predict_json(predictor.load_line('{"tokens": ["#", "won"]}\n'))
    assert predictor.dump_line(output) == "# {}\nwon {}\n\n".format(*output["tags"])
