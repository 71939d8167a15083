import numpy
import pytest
import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo import embed_sentences

# Its requirement conllu < 5 does not fit the constraints of these tests.
flair = pytest.importorskip("flair", reason="needs flair: pip install '.[flair]'")

from flair.data import Corpus, Sentence  # noqa: E402
from flair.datasets import FlairDatapointDataset  # noqa: E402
from flair.embeddings import StackedEmbeddings  # noqa: E402
from flair.models import SequenceTagger  # noqa: E402
from flair.trainers import ModelTrainer  # noqa: E402

from elmo_plugin.integrations.for_flair import ElmoEmbeddings  # noqa: E402

WORDS = [["They", "play", "chess", "."], ["Chess", "began"]]


def test_tokens_have_the_mean_of_the_layers(bilm):
    sentences = [Sentence(words) for words in WORDS]
    embeddings = ElmoEmbeddings(bilm)
    embeddings.embed(sentences)
    for sentence, layers in zip(sentences, embed_sentences(bilm, WORDS)):
        found = torch.stack([token.embedding for token in sentence])
        torch.testing.assert_close(found, layers.mean(dim=0))
    assert embeddings.embedding_length == bilm.output_dim


def test_the_bilm_may_have_a_name(bilm, tmp_path):
    bilm.save_pretrained(tmp_path)
    assert ElmoEmbeddings(tmp_path).name == ElmoEmbeddings(bilm).name


def test_layers_can_be_concatenated(bilm):
    sentence = Sentence(WORDS[0])
    StackedEmbeddings([ElmoEmbeddings(bilm, "last"), ElmoEmbeddings(bilm, [0])]).embed(sentence)
    (layers,) = embed_sentences(bilm, WORDS[:1])
    found = torch.stack([token.embedding for token in sentence])
    torch.testing.assert_close(found.sum(dim=1), (layers[0] + layers[2]).sum(dim=1))
    assert found.shape == (4, 2 * bilm.output_dim)


def test_a_sentence_gets_the_vectors_of_each_bilm(bilm):
    sentence = Sentence(WORDS[0])
    for each in (bilm, Bilm(bilm.options).eval(), Bilm(bilm.options, warm_up=True).eval()):
        embeddings = ElmoEmbeddings(each)
        embeddings.embed(sentence)
        (layers,) = embed_sentences(each, WORDS[:1])
        found = torch.stack([token.get_embedding([embeddings.name]) for token in sentence])
        torch.testing.assert_close(found, layers.mean(dim=0))


def test_a_tagger_learns_and_is_stored_with_its_bilm(bilm, tmp_path):
    data = []
    for _ in range(8):
        sentence = Sentence("Ada lives in London")
        sentence[0:1].add_label("ner", "PER")
        sentence[3:4].add_label("ner", "LOC")
        data.append(sentence)
    parts = {name: FlairDatapointDataset(data) for name in ("train", "dev", "test")}
    corpus = Corpus(**parts)
    tagger = SequenceTagger(
        ElmoEmbeddings(bilm),
        corpus.make_label_dictionary("ner"),
        "ner",
        hidden_size=16,
        allow_unk_predictions=False,
    )
    ModelTrainer(tagger, corpus).train(
        tmp_path, max_epochs=20, mini_batch_size=4, learning_rate=0.2
    )
    again = SequenceTagger.load(tmp_path / "final-model.pt")
    sentence = Sentence("Ada lives in London")
    again.predict(sentence)
    found = [(label.data_point.text, label.value) for label in sentence.get_labels()]
    assert found == [("Ada", "PER"), ("London", "LOC")]
    for stored, trained in zip(again.embeddings.bilm.parameters(), bilm.parameters(), strict=True):
        numpy.testing.assert_array_equal(stored, trained)
