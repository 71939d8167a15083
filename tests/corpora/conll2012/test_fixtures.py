from collections import Counter
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2012 import read_documents, read_sentences

FIXTURES = Path(__file__).parents[3] / "fixtures" / "corpora"


@pytest.mark.parametrize(
    "split, num_sentences, num_predicates", [("train", 48, 82), ("dev", 15, 26), ("test", 14, 24)]
)
def test_the_fixture_corpus_is_complete(split, num_sentences, num_predicates):
    path = FIXTURES / "srl" / f"{split}.gold_conll"
    documents = list(read_documents(path))
    sentences = [sentence for document in documents for sentence in document.sentences]
    every = list(read_sentences(path))
    assert [s.words for s in sentences] == [s.words for s in every]
    frames = [(sentence, frame) for sentence in every for frame in sentence.frames]
    assert (len(sentences), len(frames)) == (num_sentences, num_predicates)
    for sentence, frame in frames:
        assert frame.lemma is not None
        assert sentence.framesets[frame.predicate_index] is not None
        assert frame.tags[frame.predicate_index] == "B-V"
    for document in documents:
        mentions = [mention for sentence in document.sentences for mention in sentence.mentions]
        sizes = Counter(mention.cluster_id for mention in mentions)
        assert all(size > 1 for size in sizes.values())


@pytest.mark.parametrize(
    "path, parts, sentences, words, clusters, mentions",
    [
        ("train", 11, 93, 951, 71, 254),
        ("dev", 2, 13, 112, 12, 39),
        ("test", 2, 16, 157, 13, 49),
        ("litbank/train", 3, 26, 319, 29, 89),
        ("litbank/dev", 1, 6, 64, 7, 22),
        ("litbank/test", 1, 6, 65, 8, 20),
    ],
)
def test_the_fixture_corpus_of_coreference_is_complete(
    path, parts, sentences, words, clusters, mentions
):
    documents = list(read_documents(FIXTURES / "coref" / f"{path}.gold_conll"))
    sizes = Counter(
        (document, mention.cluster_id)
        for document in documents
        for sentence in document.sentences
        for mention in sentence.mentions
    )
    every = [sentence for document in documents for sentence in document.sentences]
    assert (len(documents), len(every)) == (parts, sentences)
    assert sum(len(sentence.words) for sentence in every) == words
    assert (len(sizes), sum(sizes.values())) == (clusters, mentions)
    # Novels have single mentions too, as in LitBank.
    assert (min(sizes.values()) > 1) != path.startswith("litbank")


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_the_fixture_corpus_of_novels_has_the_form_of_litbank(split):
    text = (FIXTURES / f"coref/litbank/{split}.gold_conll").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            assert line == "#end document" or line.endswith("_brat); part 0")
        elif line:
            cells = line.split("\t")
            assert (len(cells), cells[1], cells[4:12]) == (13, "0", ["_"] * 8)


def test_the_fixture_corpus_of_coreference_has_what_models_meet():
    documents = list(read_documents(FIXTURES / "coref" / "train.gold_conll"))
    assert len({document.document_id for document in documents}) == len(documents) - 1 == 10
    genres = {document.document_id.split("/")[0] for document in documents}
    assert genres == {"nw", "bc", "tc", "mz", "wb"}
    talk = [document for document in documents if document.sentences[0].speakers[0]]
    assert len(talk) == 3
    lengths = {
        mention.end - mention.start + 1
        for document in documents
        for sentence in document.sentences
        for mention in sentence.mentions
    }
    assert min(lengths) == 1 and max(lengths) > 10
