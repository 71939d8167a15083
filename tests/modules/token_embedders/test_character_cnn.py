from typing import Dict, List, Union

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.params import Params
from allennlp.data import Batch, Instance, Token, Vocabulary
from allennlp.data.fields import TextField
from allennlp.data.token_indexers import TokenCharactersIndexer
from allennlp.modules import TextFieldEmbedder
from allennlp.modules.token_embedders import TokenEmbedder

from elmo_plugin.modules.token_embedders.character_cnn import CharacterCnn

SENTENCES = [["a", "cab", "a", "bacca"], ["bb", "cab"], ["c"]]


def indexed(sentences: List[List[str]]) -> List[Instance]:
    indexers = {"characters": TokenCharactersIndexer(min_padding_length=3)}
    return [
        Instance({"tokens": TextField([Token(word) for word in words], indexers)})
        for words in sentences
    ]


def make_vocab() -> Vocabulary:
    return Vocabulary.from_instances(indexed(SENTENCES))


def make_batch(sentences: List[List[str]]) -> Dict[str, Dict[str, torch.Tensor]]:
    batch = Batch(indexed(sentences))
    batch.index_instances(make_vocab())
    return batch.as_tensor_dict()["tokens"]


def character_ids(sentences: List[List[str]]) -> torch.Tensor:
    return make_batch(sentences)["characters"]["token_characters"]


def make_embedder(width: Union[int, List[int]] = 3) -> CharacterCnn:
    torch.manual_seed(0)
    return CharacterCnn(make_vocab(), embedding_dim=4, num_filters=7, width=width)


def spelled_out(embedder: CharacterCnn, word: str) -> torch.Tensor:
    """One word, one window after the other."""
    vocab, dtype = make_vocab(), embedder.embedding.weight.dtype
    nothing = torch.zeros(4, dtype=dtype)
    characters = [
        embedder.embedding.weight[vocab.get_token_index(character, "token_characters")]
        for character in word
    ]
    parts = []
    for width, filters in zip(embedder.widths, embedder.filters):
        padded = [nothing] * ((width - 1) // 2) + characters + [nothing] * (width // 2)
        best = torch.zeros(7, dtype=dtype)
        for first in range(len(word)):
            window = torch.cat(padded[first : first + width])
            best = torch.maximum(best, filters.weight @ window + filters.bias)
        parts.append(best)
    return torch.cat(parts)


@pytest.mark.parametrize("width", [1, 3, 5, 2, [3, 4, 5]])
def test_equals_windows_one_by_one_in_outputs_and_gradients(width):
    embedder = make_embedder(width).double()
    output = embedder(character_ids(SENTENCES))
    expected = torch.zeros_like(output)
    for row, words in enumerate(SENTENCES):
        for column, word in enumerate(words):
            expected[row, column] = spelled_out(embedder, word)
    torch.testing.assert_close(output, expected)

    weights = torch.randn_like(output)
    parameters = list(embedder.parameters())
    found = torch.autograd.grad((output * weights).sum(), parameters)
    assert not found[0][0].any()
    wanted = torch.autograd.grad((expected * weights).sum(), parameters)
    torch.testing.assert_close(found, wanted)


def test_neither_padding_nor_the_rest_of_the_batch_changes_a_word():
    embedder = make_embedder()
    ids = character_ids(SENTENCES)
    output = embedder(ids)
    assert bool((output[ids[..., 0] == 0] == 0).all())
    wider = torch.nn.functional.pad(ids, (0, 9, 0, 2))
    torch.testing.assert_close(embedder(wider)[:, :4], output)
    order = torch.tensor([2, 0, 1])
    torch.testing.assert_close(embedder(ids[order]), output[order])
    for row, words in enumerate(SENTENCES):
        alone = embedder(character_ids([words]))
        torch.testing.assert_close(alone[0], output[row, : len(words)])


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 3), (2, 3, 3)])
def test_no_characters_give_zeros(shape):
    embedder = make_embedder()
    output = embedder(torch.zeros(shape, dtype=torch.long))
    assert output.shape == (*shape[:2], 7) and not output.any()


def test_reads_what_allennlp_s_indexer_writes_and_follows_its_vocabulary():
    vocab = make_vocab()
    params = {"type": "elmo-character-cnn", "embedding_dim": 4, "num_filters": 7}
    embedder = TextFieldEmbedder.from_params(
        Params({"token_embedders": {"characters": params}}), vocab=vocab
    )
    batch = make_batch(SENTENCES)
    output = embedder(batch)
    assert output.shape == (3, 4, 7) and embedder.get_output_dim() == 7
    vocab.add_token_to_namespace("é", "token_characters")
    embedder.token_embedder_characters.embedding.extend_vocab(vocab)
    torch.testing.assert_close(embedder(batch), output)
    new = torch.tensor([[[vocab.get_token_index("é", "token_characters")]]])
    assert embedder({"characters": {"token_characters": new}}).shape == (1, 1, 7)
    # The sizes of the paper.
    embedder = TokenEmbedder.from_params(Params({"type": "elmo-character-cnn"}), vocab=vocab)
    assert embedder.get_output_dim() == 128 and embedder.embedding.get_output_dim() == 16


@pytest.mark.parametrize("width, least", [(0, 0), ([], 0), ([3, -1], -1)])
def test_a_filter_without_a_character_is_named(width, least):
    with pytest.raises(ConfigurationError, match=f"`width` of at least 1, found {least}"):
        make_embedder(width)
