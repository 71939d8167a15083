"""What is said of a corpus before a model is trained on it."""

import gzip

import pytest

from elmo_plugin.tasks.corpus_summary import shares_without_vectors, summarise, warnings_about
from elmo_plugin.tasks.ner.reader import TagReader
from elmo_plugin.tasks.snli.reader import SnliReader
from elmo_plugin.tasks.srl.reader import SrlReader
from elmo_plugin.tasks.sst.reader import TextReader
from tests.guide import FIXTURES

TRAIN = "Ada B-PER\nlives O\nin O\nNew B-LOC\nYork I-LOC\n\nBob B-PER\nleft O\n\n"


@pytest.fixture
def summary(tmp_path):
    def read(text, reader, name="corpus.conll"):
        (tmp_path / name).write_text(text)
        numbers = []
        found = summarise(reader.read(str(tmp_path / name)), reader, numbers.append)
        assert sum(numbers) == found.num_instances
        return found

    return read


def test_instances_words_and_spans_are_counted(summary):
    found = summary(TRAIN, TagReader())
    assert (found.num_instances, found.words.total(), found.longest) == (2, 7, 5)
    assert found.labels == {"PER": 2, "LOC": 1}
    assert found.tags == "spans"
    found = summary("runs VERB\nNew B-LOC\nYork I-LOC\n", TagReader(tags="plain"))
    assert found.labels == {"VERB": 1, "B-LOC": 1, "I-LOC": 1} and found.tags == "plain"


def test_labels_with_fixed_indices_have_their_names():
    reader = SnliReader()
    path = FIXTURES / "corpora/snli/snli_1.0_dev.jsonl"
    labels = summarise(reader.read(str(path)), reader, lambda number: None).labels
    assert labels.keys() <= {"entailment", "neutral", "contradiction"} and labels.total() > 0


def test_predicates_of_one_sentence_are_no_repetition():
    reader = SrlReader()
    path = FIXTURES / "corpora/srl/train.gold_conll"
    found = summarise(reader.read(str(path)), reader, lambda number: None)
    assert len(found.inputs) == found.num_instances
    sentences = {tuple(instance["metadata"]["words"]) for instance in reader.read(str(path))}
    assert len(sentences) < found.num_instances


@pytest.mark.parametrize(
    "train, dev, sentences",
    [
        (TRAIN * 10, "Eve B-PER\n", ["18 of 20 instances of train repeat another one."]),
        (TRAIN, None, ["fewer than 10 examples in train have each of these labels: PER, LOC."]),
        (
            TRAIN,
            "Bob B-PER\nleft O\n\nIBM B-ORG\n",
            [
                "1 of 2 instances of dev are also in train, so its scores are too good.",
                "train has no example of these labels of dev: ORG.",
            ],
        ),
        (
            TRAIN,
            "Bob\nleft\n\nEve\n",
            [
                "2 of 2 instances of dev have no label, and teach or measure nothing.",
                "1 of 2 instances of dev are also in train, so its scores are too good.",
            ],
        ),
    ],
)
def test_what_may_harm_is_a_sentence(summary, train, dev, sentences):
    parts = {"train": summary(train, TagReader())}
    if dev:
        parts["dev"] = summary(dev, TagReader())
    found = list(warnings_about(parts))
    assert found[-len(sentences) :] == sentences
    # Nothing else but the rare labels of the small corpus.
    assert len(found) <= len(sentences) + (dev is not None and train == TRAIN)


@pytest.mark.parametrize(
    "text, kind, sentence",
    [
        (
            "a O\nb O\nc B-PER\nd I-PER\n" * 5 + "e X-PER\n",
            "plain",
            "95.2% of the tags are of spans, but X-PER is not, so all are plain.",
        ),
        ("a O\nb O\nc B-PER\nd I-PER\n" * 3 + "e X-PER\n", "plain", None),
        ("a O\n" * 40 + "b X\n", "plain", None),
        ("a NN\nb NN\n", "plain", "train has only the label NN: there is nothing to learn."),
        ("a B-PER\nb I-PER\n", "spans", None),
    ],
)
def test_tags_that_may_be_mistakes(summary, text, kind, sentence):
    parts = {"train": summary(text, TagReader(tags=kind))}
    found = [each for each in warnings_about(parts) if not each.startswith("fewer")]
    assert found == ([sentence] if sentence else [])


def test_a_clean_corpus_has_no_warnings(summary):
    trees = "".join(f"({label} (2 word{n}) (2 .))\n" for n in range(12) for label in (n % 2 * 4,))
    parts = {"train": summary(trees.replace("word", "W"), TextReader())}
    parts["train"].labels.update({name: 10 for name in list(parts["train"].labels)})
    parts["dev"] = summary(trees, TextReader())
    assert list(warnings_about(parts)) == []


def test_the_share_of_running_words_without_a_vector(summary, tmp_path):
    with gzip.open(tmp_path / "vectors.gz", "wt") as file:
        file.write("ada 0.5 0.5\nlives 0.1 0.2\n")
    parts = [summary(TRAIN, TagReader())]
    path = str(tmp_path / "vectors.gz")
    assert shares_without_vectors(path, parts, lowercase=True) == [pytest.approx(5 / 7)]
    assert shares_without_vectors(path, parts, lowercase=False) == [pytest.approx(6 / 7)]
