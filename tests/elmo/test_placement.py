import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError

from elmo_plugin.elmo.placement import Placement


def make(at, **elmo):
    settings = {"type": "elmo-placement", "at": at, "elmo": {"dropout": 0.0, **elmo}}
    return Placement.from_params(Params(settings))


@pytest.fixture
def tokens(shared_bilm):
    ids = shared_bilm.characters.batch_ids([["They", "play", "chess"], ["Yes"]])
    return {"elmo": {"elmo_tokens": ids}, "words": {"tokens": torch.ones(2, 3, dtype=torch.long)}}


@pytest.mark.parametrize(
    "at, input_dim, output_dim", [("input", 32, 0), ("output", 0, 32), ("both", 32, 32)]
)
def test_elmo_joins_where_it_is_placed(tokens, at, input_dim, output_dim):
    placement = make(at)
    assert (placement.input_dim, placement.output_dim) == (input_dim, output_dim)
    assert len(placement.elmo.mixes) == (2 if at == "both" else 1)
    with torch.no_grad():
        for number, mix in enumerate(placement.elmo.mixes):
            mix.gamma.fill_(number + 1.0)
    text = placement(tokens)
    assert text.words == {"words": tokens["words"]}

    vectors = torch.randn(2, 3, 5)
    mixed = placement.elmo.representations(tokens["elmo"]["elmo_tokens"])
    expected = torch.cat([vectors, mixed[0]], dim=-1) if input_dim else vectors
    assert torch.equal(text.at_input(vectors), expected)
    expected = torch.cat([vectors, mixed[-1]], dim=-1) if output_dim else vectors
    assert torch.equal(text.at_output(vectors), expected)
    assert text.at_input(vectors).size(-1) == 5 + input_dim
    assert text.at_output(vectors).size(-1) == 5 + output_dim


def test_input_and_output_are_mixed_apart_from_one_pass(tokens):
    placement, passes = make("both"), []
    placement.elmo.bilm.register_forward_hook(lambda *_: passes.append(1))
    text = placement(tokens)
    text.input_vectors.square().sum().backward()
    first, second = placement.elmo.mixes
    assert len(passes) == 1
    assert first.gamma.grad is not None and second.gamma.grad is None


TEXTS = [[["They", "play", "chess"], ["No"], ["They", "play"]], [["Yes"]], [], [["chess"] * 5]]


def in_sentences(shared_bilm, texts):
    """Character ids of whole texts and the number of each token's sentence; -1 is padding."""
    ids = shared_bilm.characters.batch_ids([sum(text, []) for text in texts])
    sentences = torch.full(ids.shape[:2], -1)
    for row, text in enumerate(texts):
        numbers = [number for number, sentence in enumerate(text) for _ in sentence]
        sentences[row, : len(numbers)] = torch.tensor(numbers, dtype=torch.long)
    return {"elmo": {"elmo_tokens": ids}}, sentences


def test_sentences_of_a_text_can_be_read_apart(shared_bilm):
    placement = make("both")
    with torch.no_grad():
        placement.elmo.mixes[1].gamma.fill_(2.0)
    tokens, sentences = in_sentences(shared_bilm, TEXTS)
    passes = []
    handle = placement.elmo.bilm.register_forward_hook(lambda *_: passes.append(1))
    text = placement(tokens, sentences)
    handle.remove()
    assert len(passes) == 1 and text.output_vectors.requires_grad
    whole = placement(tokens)
    for row, sentences_of_text in enumerate(TEXTS):
        start = 0
        for sentence in sentences_of_text:
            ids = shared_bilm.characters.batch_ids([sentence])
            for mixed, vectors in zip(
                placement.elmo.representations(ids), (text.input_vectors, text.output_vectors)
            ):
                found = vectors[row, start : start + len(sentence)]
                torch.testing.assert_close(found, mixed[0])
            start += len(sentence)
        assert not text.input_vectors[row, start:].any()
    assert not torch.allclose(text.input_vectors[0], whole.input_vectors[0])
    # A text of one sentence is read as without sentences.
    torch.testing.assert_close(text.input_vectors[1], whole.input_vectors[1])


def test_texts_without_a_token_have_no_sentences(shared_bilm):
    empty = {"elmo": {"elmo_tokens": torch.zeros(2, 3, 50, dtype=torch.long)}}
    text = make("input")(empty, torch.full((2, 3), -1))
    assert text.input_vectors.shape == (2, 3, 32) and not text.input_vectors.any()


@pytest.mark.parametrize("settings", [{}, {"type": "elmo-none"}])
def test_the_baseline_adds_nothing(tokens, settings):
    placement = Placement.from_params(Params(settings))
    text, vectors = placement(tokens), torch.randn(2, 3, 5)
    assert (placement.input_dim, placement.output_dim) == (0, 0)
    assert text.words is tokens
    assert placement(tokens, torch.zeros(2, 3)).words is tokens
    assert text.at_input(vectors) is vectors and text.at_output(vectors) is vectors
    assert list(placement.parameters()) == []


def test_the_indexer_may_have_another_name(tokens):
    tokens["characters"] = tokens.pop("elmo")
    settings = {"type": "elmo-placement", "indexer": "characters", "elmo": {}}
    text = Placement.from_params(Params(settings))(tokens)
    assert text.words.keys() == {"words"} and text.input_vectors.shape == (2, 3, 32)


def test_a_missing_indexer_is_named_with_the_cure(tokens):
    del tokens["elmo"]
    with pytest.raises(ConfigurationError) as error:
        make("input")(tokens)
    assert "'elmo', but the text has only ['words']" in str(error.value)
    assert "`elmo: {type: 'elmo-characters'}`" in str(error.value)


def test_an_unknown_place_is_refused():
    with pytest.raises(ConfigurationError, match="one of input, output, both, found 'middle'"):
        make("middle")
