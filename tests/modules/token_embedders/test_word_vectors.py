import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, Vocabulary
from allennlp.data.token_indexers import TokenIndexer
from allennlp.modules import TokenEmbedder

from elmo_plugin.modules.token_embedders.word_vectors import WordVectors
from elmo_plugin.util import files

LINES = ["the 1 2 3", "play 4 5 6", "at the 0 0 1", "Zeus 7 8 9", "hut -1 -2 -3"]
VECTORS = {line.rsplit(" ", 3)[0]: [float(n) for n in line.rsplit(" ", 3)[1:]] for line in LINES}


@pytest.fixture
def vocab():
    return Vocabulary({"tokens": {"play": 3, "ball": 2}})


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "vectors.txt")


def write(path, lines=LINES):
    text = "\n".join(lines) + "\n"
    path.write_text(text, encoding="utf-8")
    return str(path)


def vectors_of(embedder, vocab, words):
    ids = torch.tensor([[vocab.get_token_index(word) for word in words]])
    return embedder(ids)[0].tolist()


def test_words_outside_the_training_data_have_vectors_that_are_not_trained(vocab, path):
    embedder = WordVectors(vocab, 3, path)
    assert embedder.weight.shape == (4, 3)
    assert vocab.get_vocab_size() == 4 + 4
    words = ["Zeus", "play", "hut", "at the"]
    assert vectors_of(embedder, vocab, words) == [VECTORS[word] for word in words]
    ids = torch.tensor([[vocab.get_token_index(word) for word in ("Zeus", "play", "Zeus")]])
    embedder(ids).sum().backward()
    assert embedder.weight.grad[vocab.get_token_index("play")].tolist() == [1, 1, 1]
    assert embedder.weight.grad.sum() == 3 and embedder.extra.grad is None


def test_the_first_num_extra_words_are_added(vocab, path):
    embedder = WordVectors(vocab, 3, path, num_extra_words=2)
    names = vocab.get_index_to_token_vocabulary()
    assert [names[index] for index in range(4, len(names))] == ["the", "at the"]
    assert len(embedder.extra) == 2


def test_a_word_that_the_file_lacks_gets_a_random_vector_and_padding_is_zero(vocab, path):
    torch.manual_seed(0)
    embedder = WordVectors(vocab, 3, path)
    rows = [vocab.get_token_index(word) for word in ("ball", "never seen")]
    torch.manual_seed(0)
    drawn = torch.empty(4, 3).normal_(float(numpy.mean([4, 5, 6])), float(numpy.std([4, 5, 6])))
    assert torch.equal(embedder.weight[rows], drawn[rows])
    assert embedder(torch.tensor([[0]])).tolist() == [[[0, 0, 0]]]


def test_a_saved_embedder_needs_no_file(vocab, path, tmp_path):
    embedder = WordVectors(vocab, 3, path, num_extra_words=2)
    # AllenNLP loads an archive with the extended vocabulary and without the file.
    vocab.save_to_files(tmp_path / "vocabulary")
    vocab = Vocabulary.from_files(tmp_path / "vocabulary")
    loaded = TokenEmbedder.from_params(
        Params({"type": "elmo-word-vectors", "embedding_dim": 3}), vocab=vocab
    )
    loaded.load_state_dict(embedder.state_dict())
    words = ["the", "play", "at the", "ball", "unknown"]
    assert vectors_of(loaded, vocab, words) == vectors_of(embedder, vocab, words)
    # It recovers a training with the extended vocabulary and the file.
    again = WordVectors(vocab, 3, path, num_extra_words=2)
    assert torch.equal(again.extra, embedder.extra)
    again.load_state_dict(embedder.state_dict())
    assert vectors_of(again, vocab, words) == vectors_of(embedder, vocab, words)


def test_two_embedders_of_a_namespace_know_the_same_words(tmp_path, vocab, path):
    first = WordVectors(vocab, 3, path, num_extra_words=2)
    other = write(tmp_path / "other.txt", ["the 9 9", "play 8 8", "zoo 7 7"])
    second = WordVectors(vocab, 2, other)
    assert len(first.weight) == len(second.weight) == 4 and len(second.extra) == 2
    assert vectors_of(second, vocab, ["the", "play"]) == [[9, 9], [8, 8]]
    unknown = second.weight[1].tolist()
    assert vectors_of(second, vocab, ["at the", "zoo"]) == [unknown, unknown]


def test_an_embedder_without_a_file_adds_no_words_nor_does_one_after_it(vocab, path):
    first, second = WordVectors(vocab, 5), WordVectors(vocab, 3, path, trainable=False)
    assert vocab.get_vocab_size() == len(first.weight) == len(second.weight) == 4
    assert len(first.extra) == len(second.extra) == 0 and first.get_output_dim() == 5
    assert first.weight.requires_grad and not second.weight.requires_grad


def test_words_of_an_extended_vocabulary_have_the_unknown_word_s_vector(vocab, path):
    embedder = WordVectors(vocab, 3, path, num_extra_words=1)
    vocab.add_token_to_namespace("new")
    # As AllenNLP calls it.
    for _ in range(2):
        embedder.extend_vocab(vocab, extension_pretrained_file=None, model_path="words")
    unknown = embedder.weight[1].tolist()
    found = vectors_of(embedder, vocab, ["the", "new", "never seen"])
    assert found == [VECTORS["the"], unknown, unknown] and len(embedder.extra) == 2


@pytest.mark.parametrize("num_others, is_warned", [(7, False), (8, True)])
def test_a_file_of_few_of_the_words_is_warned_of(path, num_others, is_warned, caplog):
    # Beside "play", and the padding and unknown words.
    words = {f"word {number}": 1 for number in range(num_others)}
    WordVectors(Vocabulary({"tokens": {"play": 3, **words}}), 3, path)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [message.endswith("such as ELMO_GLOVE.") for message in warnings] == [True] * is_warned


def test_a_file_may_be_at_a_url(tmp_path, vocab, monkeypatch):
    copy = write(tmp_path / "v.txt")
    monkeypatch.setattr(files, "download", lambda url: copy)
    embedder = WordVectors(vocab, 3, "https://host/v.txt")
    assert vectors_of(embedder, vocab, ["play"]) == [VECTORS["play"]]


def test_a_file_that_does_not_fit_is_refused(tmp_path, vocab):
    with pytest.raises(ConfigurationError, match="no vector for any of the 4 words"):
        WordVectors(vocab, 3, write(tmp_path / "v.txt", ["jouer 1 2 3"]))
    with pytest.raises(ConfigurationError, match=r"nowhere\.txt\. Set ELMO_GLOVE"):
        WordVectors(vocab, 3, str(tmp_path / "nowhere.txt"))
    with pytest.raises(ValueError, match=r"v\.txt:1: expected a word and the 3 numbers .* 'the 1"):
        WordVectors(vocab, 3, write(tmp_path / "v.txt", ["the 1 2", "play 4 5"]))


def test_words_without_a_vector_are_zeros_where_that_is_set(vocab, path):
    for zero_unknown in (True, False):
        embedder = WordVectors(vocab, 3, path, zero_unknown=zero_unknown)
        unknown = [not any(row) for row in vectors_of(embedder, vocab, ["ball", "never-seen"])]
        assert unknown == [zero_unknown] * 2
        words = ["play", "Zeus"]
        assert vectors_of(embedder, vocab, words) == [VECTORS[word] for word in words]


CASES = ["London 1 2 3", "play 4 5 6", "zeus 7 8 9", "Zeus 0 0 1", "Paris 2 2 2"]


def test_a_word_without_a_vector_has_that_of_its_lower_or_title_case(tmp_path):
    vocab = Vocabulary({"tokens": dict.fromkeys(["LONDON", "PLAY", "ZEUS", "Zeus", "ball"], 1)})
    path = write(tmp_path / "vectors.txt", CASES)
    embedder = WordVectors(vocab, 3, path, case_fallback=True)
    words = ["LONDON", "PLAY", "ZEUS", "Zeus"]
    expected = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [0, 0, 1]]
    assert vectors_of(embedder, vocab, words) == expected
    assert vectors_of(embedder, vocab, ["ball"]) != vectors_of(embedder, vocab, ["play"])
    # Forms that only other words need stay words of the file, which are not trained.
    assert len(embedder.weight) == 7 and len(embedder.extra) == 4
    assert vectors_of(embedder, vocab, ["Paris", "play"]) == [[2, 2, 2], [4, 5, 6]]
    # The words of the corpus do not change each other's rows.
    plain = WordVectors(Vocabulary({"tokens": {"LONDON": 1, "play": 1}}), 3, path)
    assert plain.weight[2:].tolist().count([4, 5, 6]) == 1 and len(plain.extra) == 4


def test_a_new_word_has_the_id_of_another_case_of_it(tmp_path):
    vocab = Vocabulary({"tokens": {"play": 1, "LONDON": 1}})
    embedder = WordVectors(vocab, 3, write(tmp_path / "vectors.txt", CASES), case_fallback=True)
    indexer = TokenIndexer.from_params(Params({"type": "elmo-words"}))
    words = ["PARIS", "PLAY", "london", "ZEUS", "LONDON", "never-seen"]
    ids = indexer.tokens_to_indices([Token(word) for word in words], vocab)["tokens"]
    same = ["Paris", "play", "London", "zeus", "LONDON", "@@UNKNOWN@@"]
    assert ids == [vocab.get_token_index(word) for word in same]
    assert embedder(torch.tensor([ids]))[0, 0].tolist() == [2, 2, 2]
