"""Character ids, word by word and through AllenNLP's text fields."""

import json
import pickle
import random

import pytest
import torch
from allennlp.common import Params
from allennlp.data import Batch, Instance, Token, TokenIndexer, Vocabulary
from allennlp.data.fields import ListField, TextField
from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper

from elmo_plugin.bilm import CharacterMap, characters
from elmo_plugin.bilm.character_indexer import CharacterIndexer

ODD = ["", "<S>", "</S>", "<s>", " ", "\0", "\ud800", "a\udfffb", "🙂", "é", "e\u0301", "\uffff"]
LONG = ["a" * 47, "a" * 48, "a" * 49, "é" * 24, "a" + "é" * 24, "日" * 17, "a" * 100_000]
# A lone surrogate has no bytes.
LONG += ["\ud800" + "a" * 60]


def random_unicode(num_words):
    """Words of 0 to 59 code points, lone surrogates among them."""
    generator = random.Random(0)
    ends = generator.choices([128, 0x3000, 0x110000], k=num_words)
    return [
        "".join(chr(generator.randrange(end)) for _ in range(generator.randrange(60)))
        for end in ends
    ]


def test_ids_are_allennlps_for_any_word():
    character_map, mapper = CharacterMap(), ELMoCharacterMapper()
    for word in ODD + LONG + random_unicode(500):
        assert character_map.word_ids(word).tolist() == mapper.convert_word_to_char_ids(word)


def test_a_short_word_by_hand():
    assert CharacterMap(6).word_ids("aé").tolist() == [259, 98, 196, 170, 260, 261]
    assert CharacterMap(4).word_ids("aé").tolist() == [259, 98, 196, 260]
    assert CharacterMap(4).word_ids("<S>").tolist() == [259, 257, 260, 261]


def test_a_batch_is_padded_with_zeros():
    character_map = CharacterMap()
    ids = character_map.batch_ids([["a"], [], ["b", "c"]])
    assert ids.shape == (3, 2, 50) and ids.dtype == torch.long
    assert ids[2, 1].tolist() == character_map.word_ids("c").tolist()
    assert not ids[0, 1].any() and not ids[1].any()
    assert character_map.batch_ids([]).shape == (0, 0, 50)
    assert character_map.batch_ids([[], []]).shape == (2, 0, 50)


def test_remembered_words_cannot_be_spoiled_and_are_bounded(monkeypatch):
    monkeypatch.setattr(characters, "_MAX_CACHED", 3)
    character_map, mapper = CharacterMap(), ELMoCharacterMapper()
    with pytest.raises(ValueError):
        character_map.word_ids("a")[0] = 7
    for word in "abcdefgabc":
        assert character_map.word_ids(word).tolist() == mapper.convert_word_to_char_ids(word)
        assert len(character_map._cached) <= 3


def batch_of(indexer, sentences, nested=False):
    fields = [TextField([Token(word) for word in words], {"elmo": indexer}) for words in sentences]
    if nested:
        fields = [ListField(fields)]
    batch = Batch([Instance({"text": field}) for field in fields])
    batch.index_instances(Vocabulary())
    return batch.as_tensor_dict()["text"]["elmo"]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    "sentences", [[["The", "play"], [], ["Yes", "<S>", "日本語"]], [[], []], [ODD, LONG]]
)
def test_the_indexer_gives_allennlps_tensors(sentences, nested):
    theirs = TokenIndexer.from_params(Params({"type": "elmo_characters"}))
    ours = TokenIndexer.from_params(Params({"type": "elmo-characters"}))
    found, expected = (batch_of(indexer, sentences, nested) for indexer in (ours, theirs))
    assert found.keys() == expected.keys() == {"elmo_tokens"}
    assert found["elmo_tokens"].dtype == expected["elmo_tokens"].dtype
    # Of an empty batch AllenNLP forgets the number of characters.
    if any(sentences):
        assert torch.equal(found["elmo_tokens"], expected["elmo_tokens"])
    else:
        assert found["elmo_tokens"].size(-1) == 50 and not found["elmo_tokens"].any()


def test_the_indexer_follows_an_options_file(tmp_path, make_options):
    source = make_options(max_characters_per_token=7)
    (tmp_path / "options.json").write_text(json.dumps(source))
    indexer = TokenIndexer.from_params(
        Params({"type": "elmo-characters", "options_file": str(tmp_path / "options.json")})
    )
    character_map = CharacterMap(7)
    sentences = [["a", "日本"], ["!"]]
    found = batch_of(indexer, sentences)["elmo_tokens"]
    assert torch.equal(found, character_map.batch_ids(sentences))


def test_the_indexer_survives_pickling():
    indexer = CharacterIndexer()
    before = batch_of(indexer, [["The", "play"]])["elmo_tokens"]
    copied = pickle.loads(pickle.dumps(indexer))
    assert torch.equal(batch_of(copied, [["The", "play"]])["elmo_tokens"], before)


def test_a_sentence_that_is_a_string_is_refused():
    with pytest.raises(TypeError, match="list of words, found the string 'The play began'"):
        CharacterMap().batch_ids(["The play began"])
