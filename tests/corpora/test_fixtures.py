"""The small corpora that come with the project are complete, and what their formats say."""

from collections import Counter
from pathlib import Path

import pytest

from elmo_plugin.corpora import conll2003, conll2012, snli, squad, sst
from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.corpora.tagged_words import read_conllu, read_tag_columns

CORPORA = Path(__file__).parents[2] / "fixtures/corpora"


def entities(path):
    sentences = list(conll2003.read_sentences(path))
    starts = sum(sentence.is_document_start for sentence in sentences)
    return starts, len(sentences), sum(len(tags_to_spans(s.tags)) for s in sentences)


def predicates(path):
    sentences = list(conll2012.read_sentences(path))
    return len(sentences), sum(len(sentence.frames) for sentence in sentences)


def clusters(path):
    documents = list(conll2012.read_documents(path))
    every = [sentence for document in documents for sentence in document.sentences]
    sizes = Counter((d, m.cluster_id) for d in documents for s in d.sentences for m in s.mentions)
    num_words = sum(len(sentence.words) for sentence in every)
    return len(documents), len(every), num_words, len(sizes), sizes.total()


def pairs(path):
    found = list(snli.read_pairs(path))
    return len({pair.premise for pair in found}), len({pair.pair_id for pair in found})


def questions(path):
    paragraphs = list(squad.read_paragraphs(path))
    found = [question for paragraph in paragraphs for question in paragraph.questions]
    return len(paragraphs), len(found), sum(len(question.answers) for question in found)


def trees(path):
    return (len(list(sst.read_trees(path))),)


def tagged(path):
    """The same words and tags as in the corpus that it is made from."""
    found = list(read_conllu(path, "xpos"))
    assert found == list(read_tag_columns(CORPORA / f"ner/{path.stem}.conll", 1, 2))
    return len(found), sum(len(sentence.words) for sentence in found)


@pytest.mark.parametrize(
    "count, path, numbers",
    [
        (entities, "ner/train.conll", (6, 56, 118)),
        (entities, "ner/dev.conll", (3, 17, 36)),
        (entities, "ner/test.conll", (3, 18, 36)),
        (predicates, "srl/train.gold_conll", (48, 82)),
        (predicates, "srl/dev.gold_conll", (15, 26)),
        (predicates, "srl/test.gold_conll", (14, 24)),
        (clusters, "coref/train.gold_conll", (11, 93, 951, 71, 254)),
        (clusters, "coref/dev.gold_conll", (2, 13, 112, 12, 39)),
        (clusters, "coref/test.gold_conll", (2, 16, 157, 13, 49)),
        (clusters, "coref/litbank/train.gold_conll", (3, 26, 319, 29, 89)),
        (clusters, "coref/litbank/dev.gold_conll", (1, 6, 64, 7, 22)),
        (clusters, "coref/litbank/test.gold_conll", (1, 6, 65, 8, 20)),
        (pairs, "snli/snli_1.0_train.jsonl", (24, 72)),
        (pairs, "snli/snli_1.0_dev.jsonl", (8, 24)),
        (pairs, "snli/snli_1.0_test.jsonl", (8, 24)),
        (questions, "squad/train-v1.1.json", (12, 71, 71)),
        (questions, "squad/dev-v1.1.json", (4, 20, 46)),
        (trees, "sst/train.txt", (46,)),
        (trees, "sst/dev.txt", (10,)),
        (trees, "sst/test.txt", (10,)),
        (tagged, "pos/train.conllu", (56, 611)),
        (tagged, "pos/test.conllu", (18, 179)),
    ],
)
def test_a_fixture_is_complete(count, path, numbers):
    assert count(CORPORA / path) == numbers
