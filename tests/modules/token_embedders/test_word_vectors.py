import gzip
import sys
import zipfile
from types import SimpleNamespace

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.modules import TokenEmbedder

from elmo_plugin.modules.token_embedders.word_vectors import WordVectors

LINES = ["the 1 2 3", "play 4 5 6", "at the 0 0 1", "Zeus 7 8 9", "hut -1 -2 -3"]
VECTORS = {line.rsplit(" ", 3)[0]: [float(n) for n in line.rsplit(" ", 3)[1:]] for line in LINES}


@pytest.fixture
def vocab():
    return Vocabulary({"tokens": {"play": 3, "ball": 2}})


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "vectors.txt")


def write(path, lines=LINES, header=None):
    text = "\n".join(([header] if header else []) + lines) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.txt", text)
    else:
        path.write_text(text, encoding="utf-8")
    return str(path)


def vectors_of(embedder, vocab, words):
    ids = torch.tensor([[vocab.get_token_index(word) for word in words]])
    return embedder(ids)[0].tolist()


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.zip"])
@pytest.mark.parametrize("header", [None, "5 3"])
def test_words_have_the_vectors_of_the_file(tmp_path, vocab, name, header):
    embedder = WordVectors(vocab, 3, write(tmp_path / name, header=header))
    assert vectors_of(embedder, vocab, ["play"]) == [VECTORS["play"]]
    assert embedder.weight.shape == (4, 3)


def test_words_outside_the_training_data_have_vectors_that_are_not_trained(vocab, path):
    embedder = WordVectors(vocab, 3, path)
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


@pytest.mark.parametrize(
    "lines, vectors",
    [
        # The first vector of a word counts.
        (
            ["play 1 1 1", "zoo 2 2 2", "", "play 3 3 3", "zoo 4 4 4", ""],
            {"play": [1, 1, 1], "zoo": [2, 2, 2]},
        ),
        # A word with a space may begin with a word of the corpus.
        (["the 1 2 3", "play name@domain.com 0 0 1", "play 4 5 6"], {"play": [4, 5, 6]}),
        # A byte order mark is no part of a word.
        (["\ufeffplay 1 1 1"], {"play": [1, 1, 1]}),
    ],
)
def test_unusual_lines_are_read(tmp_path, vocab, lines, vectors):
    embedder = WordVectors(vocab, 3, write(tmp_path / "v.txt", lines))
    assert vectors_of(embedder, vocab, list(vectors)) == list(vectors.values())


def test_weights_of_another_vocabulary_are_refused(vocab, path):
    embedder = WordVectors(vocab, 3, path)
    other = WordVectors(Vocabulary({"tokens": {"play": 1}}), 3)
    with pytest.raises(RuntimeError, match="size mismatch"):
        other.load_state_dict(embedder.state_dict())


def test_an_extended_vocabulary_finds_vectors_or_the_unknown_words(vocab, path):
    embedder = WordVectors(vocab, 3, path, num_extra_words=1)
    for word in ("hut", "new"):
        vocab.add_token_to_namespace(word)
    embedder.extend_vocab(vocab, extension_pretrained_file=path)
    found = vectors_of(embedder, vocab, ["hut", "new", "the", "never seen"])
    assert found[0] == VECTORS["hut"] and found[2] == VECTORS["the"]
    assert found[1] == found[3] == embedder.weight[1].tolist()
    embedder.extend_vocab(vocab)
    assert len(embedder.extra) == 3


def test_a_file_without_any_of_the_words_is_refused(tmp_path, vocab):
    with pytest.raises(ConfigurationError, match="no vector for any of the 4 words"):
        WordVectors(vocab, 3, write(tmp_path / "v.txt", ["jouer 1 2 3"]))
    with pytest.raises(ConfigurationError, match=r"nowhere\.txt\. Set ELMO_GLOVE"):
        WordVectors(vocab, 3, str(tmp_path / "nowhere.txt"))


@pytest.mark.parametrize("num_others, is_warned", [(7, False), (8, True)])
def test_a_file_of_few_of_the_words_is_warned_of(path, num_others, is_warned, caplog):
    # Beside "play", and the padding and unknown words.
    words = {f"word {number}": 1 for number in range(num_others)}
    WordVectors(Vocabulary({"tokens": {"play": 3, **words}}), 3, path)
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [message.endswith("such as ELMO_GLOVE.") for message in warnings] == [True] * is_warned


def test_a_file_may_be_at_a_url(tmp_path, vocab, monkeypatch):
    copy = write(tmp_path / "v.zip")
    monkeypatch.setitem(
        sys.modules, "cached_path", SimpleNamespace(cached_path=lambda url, **settings: copy)
    )
    for url in ("https://host/v.zip", "(https://host/v.zip)#inside.txt"):
        embedder = WordVectors(vocab, 3, url)
        assert vectors_of(embedder, vocab, ["play"]) == [VECTORS["play"]]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("v.txt", b"the 1 2\nplay 4 5\n", r"v\.txt:1: expected a word and the 3 numbers .* 'the 1"),
        ("v.txt", b"the 1 2 3 4\nplay 4 5 6 7\n", r"v\.txt:1: expected a word and the 3 numbers"),
        ("v.txt", b"the 1 2 3\n" * 20 + b"\0" * 50, r"v\.txt:21: expected"),
        ("v.txt.gz", gzip.compress(b"the 1 2 3\nplay 4 5 6", mtime=0)[:-12], r"v\.txt\.gz:\d: expected"),
        ("v.txt.gz", b"no gzip", r"v\.txt\.gz.*: expected"),
    ],
)
def test_a_damaged_file_is_named_with_the_line(tmp_path, vocab, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        WordVectors(vocab, 3, str(path))


def test_words_without_a_vector_are_zeros_where_that_is_set(vocab, path):
    for zero_unknown in (True, False):
        embedder = WordVectors(vocab, 3, path, zero_unknown=zero_unknown)
        unknown = [not any(row) for row in vectors_of(embedder, vocab, ["ball", "never-seen"])]
        assert unknown == [zero_unknown] * 2
        words = ["play", "Zeus"]
        assert vectors_of(embedder, vocab, words) == [VECTORS[word] for word in words]
