import pytest
import torch

from elmo_plugin import embed_sentences
from elmo_plugin.elmo import token_batches
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import assert_layers_equal


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_sentences_come_back_in_order_without_their_marks(
    shared_bilm, sentences, golden, batch_size, monkeypatch
):
    monkeypatch.setattr(token_batches, "BATCHES_AHEAD", 2)
    embedded = list(embed_sentences(shared_bilm, sentences * 3, batch_size))
    assert len(embedded) == 3 * len(sentences)
    for number, (words, found) in enumerate(zip(sentences * 3, embedded)):
        assert found.shape == (3, len(words), 32)
        if words:
            assert_layers_equal(found, golden[number % len(sentences)][:, 1:-1])


def test_a_generator_is_read_no_further_than_needed(shared_bilm):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield ["word"]

    embedded = embed_sentences(shared_bilm, endless(), batch_size=2)
    assert next(embedded).shape == (3, 1, 32)
    assert len(taken) == 32


def test_no_sentences_give_nothing(shared_bilm):
    assert list(embed_sentences(shared_bilm, [])) == []
    assert [found.shape for found in embed_sentences(shared_bilm, [[], []])] == [(3, 0, 32)] * 2


@pytest.mark.parametrize(
    "sentences, expected",
    [
        ([["b"], ["a", 5]], "list of strings as sentences[1], found \"['a', 5]\"."),
        ([[b"bytes"]], "sentences[0], found \"[b'bytes']\"."),
        ([["a"], "The play began"], "sentences[1], found 'The play began'. Split the text"),
        ([["a"], None], "sentences[1], found 'None'."),
    ],
)
def test_what_is_no_list_of_words_is_named(shared_bilm, sentences, expected):
    with pytest.raises(TypeError) as error:
        list(embed_sentences(shared_bilm, sentences))
    assert expected in str(error.value)


def test_a_long_sentence_is_read_alone(shared_bilm, sentences, golden, monkeypatch):
    sizes = []
    monkeypatch.setattr(token_batches, "MAX_TOKENS", 20)
    handle = shared_bilm.register_forward_hook(lambda _, ids, __: sizes.append(ids[0].shape[:2]))
    long = [["a"] * 100, sentences[1], ["b"] * 99, sentences[1]]
    embedded = list(embed_sentences(shared_bilm, long))
    handle.remove()
    assert [found.size(1) for found in embedded] == [100, 3, 99, 3]
    assert_layers_equal(embedded[3], golden[1][:, 1:-1])
    assert sorted(tuple(size) for size in sizes) == [(1, 99), (1, 100), (2, 3)]


def test_a_stateful_bilm_reads_in_the_order_given(bilm, sentences):
    bilm.stateful = True
    expected = [bilm(bilm.characters.batch_ids([words])).layers[:, 0, 1:-1] for words in sentences]
    bilm.reset_state()
    for found, other in zip(embed_sentences(bilm, sentences, batch_size=1), expected):
        if found.numel():
            assert_layers_equal(found, other)


def test_vectors_stand_alone(shared_bilm, sentences):
    first, second = list(embed_sentences(shared_bilm, sentences[:2]))
    assert not first.requires_grad and first.is_contiguous()
    assert first.untyped_storage().nbytes() == first.numel() * 4
    assert first.device == torch.device("cpu") and second.dtype == torch.float32


@pytest.mark.parametrize("tokenizer", ["de", lambda text: text.replace(",", " ,").split()])
def test_strings_are_split_by_a_tokenizer(shared_bilm, tokenizer):
    words = [["Sie", "spielten", ",", "z.B.", "Schach"], [], ["Ja"]]
    raw = ["Sie spielten, z.B. Schach", "", " Ja "]
    found = list(embed_sentences(shared_bilm, raw, tokenizer=tokenizer))
    for layers, expected in zip(found, embed_sentences(shared_bilm, words), strict=True):
        assert torch.equal(layers, expected)


def test_strings_and_a_tokenizer_belong_together(shared_bilm):
    with pytest.raises(TypeError, match="sentences\\[0\\], found 'They play.'.* `tokenizer`"):
        list(embed_sentences(shared_bilm, ["They play."]))
    with pytest.raises(TypeError, match="a string as sentences\\[1\\].* Leave out `tokenizer`"):
        list(embed_sentences(shared_bilm, ["They play.", ["They"]], tokenizer="en"))
    with pytest.raises(TypeError, match="list of sentences, found the string 'They play.'"):
        list(embed_sentences(shared_bilm, "They play.", tokenizer="en"))
    with pytest.raises(ConfigurationError, match="found 'qq'"):
        embed_sentences(shared_bilm, [], tokenizer="qq")
