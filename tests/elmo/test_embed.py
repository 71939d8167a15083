import numpy
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


@pytest.mark.parametrize("layers, numbers", [("all", [0, 1, 2]), ("last", [2]), ([2, 0], [2, 0])])
def test_layers_are_chosen(shared_bilm, sentences, layers, numbers):
    expected = embed_sentences(shared_bilm, sentences)
    for found, all_layers in zip(embed_sentences(shared_bilm, sentences, layers=layers), expected):
        assert torch.equal(found, all_layers[numbers])


def slowly_pooled(vectors, pool):
    """Of one layer, shape `(num_tokens, dim)`, as a list of numbers."""
    if not vectors:
        return [0.0] * 32
    if pool == "first_last":
        # The first half of a vector is the forward LSTM's.
        return vectors[-1][:16] + vectors[0][16:]
    columns = list(zip(*vectors))
    return [max(column) if pool == "max" else sum(column) / len(column) for column in columns]


@pytest.mark.parametrize("pool", ["mean", "max", "first_last"])
def test_a_pool_makes_one_vector_of_each_layer(shared_bilm, sentences, pool):
    assert [] in sentences and any(len(words) == 1 for words in sentences)
    layers = [each.double() for each in embed_sentences(shared_bilm, sentences, batch_size=1)]
    found = list(embed_sentences(shared_bilm, sentences, layers=[2, 1], pool=pool))
    for each, vectors in zip(found, layers, strict=True):
        expected = [slowly_pooled(vectors[layer].tolist(), pool) for layer in (2, 1)]
        assert each.shape == (2, 32)
        numpy.testing.assert_allclose(each, expected, atol=1e-6)


def test_first_and_last_are_the_states_that_have_read_all_words(shared_bilm):
    words = ["They", "play", "chess"]
    changed = [words, ["They", "play", "it"], ["We", "play", "chess"]]
    states = list(embed_sentences(shared_bilm, changed, layers="last", pool="first_last"))
    tokens = list(embed_sentences(shared_bilm, changed, layers="last"))
    for other in (1, 2):
        assert (states[other] != states[0]).any(dim=1).all()
        for half in (slice(16), slice(16, None)):
            assert not torch.equal(states[other][:, half], states[0][:, half])
    # The other halves have read one word.
    torch.testing.assert_close(tokens[1][:, 0, :16], tokens[0][:, 0, :16])
    torch.testing.assert_close(tokens[2][:, -1, 16:], tokens[0][:, -1, 16:])


def test_wrong_settings_are_refused_at_once(shared_bilm):
    with pytest.raises(ConfigurationError, match="`pool` to be one of mean, max, .*, found 'sum'"):
        embed_sentences(shared_bilm, [], pool="sum")
    with pytest.raises(ConfigurationError, match=r"0 \(the token layer\) to 2, found \[3\]"):
        embed_sentences(shared_bilm, [], layers=[3])


@pytest.mark.parametrize("of_total, sentences", [(" of 3", list), ("", iter)])
def test_progress_is_shown_on_request(shared_bilm, monkeypatch, capsys, of_total, sentences):
    monkeypatch.setattr("elmo_plugin.util.progress._SECONDS", 0.0)
    words = [["They", "play"], [], ["Chess"]]
    found = list(embed_sentences(shared_bilm, sentences(words), progress=True))
    assert [layers.size(1) for layers in found] == [2, 0, 1]
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 3 and shown[-1].startswith(f"3{of_total} sentences, ")
    list(embed_sentences(shared_bilm, words))
    assert capsys.readouterr().err == ""
