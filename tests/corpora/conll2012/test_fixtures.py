from collections import Counter
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2012 import read_documents, read_sentences

FIXTURES = Path(__file__).parents[3] / "fixtures" / "corpora" / "srl"


@pytest.mark.parametrize(
    "split, num_sentences, num_predicates", [("train", 48, 82), ("dev", 15, 26), ("test", 14, 24)]
)
def test_the_fixture_corpus_is_complete(split, num_sentences, num_predicates):
    path = FIXTURES / f"{split}.gold_conll"
    documents = list(read_documents(path))
    sentences = [sentence for document in documents for sentence in document.sentences]
    assert sentences == list(read_sentences(path))
    frames = [frame for sentence in sentences for frame in sentence.frames]
    assert (len(sentences), len(frames)) == (num_sentences, num_predicates)
    for frame in frames:
        assert frame.lemma is not None and frame.frameset is not None
        assert frame.tags[frame.predicate_index] == "B-V"
    for document in documents:
        mentions = [mention for sentence in document.sentences for mention in sentence.mentions]
        sizes = Counter(mention.cluster_id for mention in mentions)
        assert all(size > 1 for size in sizes.values())
