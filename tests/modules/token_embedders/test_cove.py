"""The token embedder of CoVe."""

import shutil
from pathlib import Path

import pytest
import torch
from allennlp.commands.train import train_model_from_file
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.models import load_archive
from allennlp.modules import TokenEmbedder
from allennlp.predictors import Predictor

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.bilm.files.pack import pack
from elmo_plugin.modules.cove_files import read_cove_encoder

PROJECT = Path(__file__).parents[3]
WEIGHTS = PROJECT / "fixtures/cove/weights.pth"
GLOVE = PROJECT / "fixtures/corpora/glove/vectors.100d.txt.gz"


def build(words=("the", "mayor", "xyzzy"), word_vectors=(), **settings):
    vocab = Vocabulary()
    for word in words:
        vocab.add_token_to_namespace(word)
    params = {
        "type": "elmo-cove",
        "weight_file": str(WEIGHTS),
        "word_vectors": {
            "type": "elmo-word-vectors",
            "embedding_dim": 100,
            "pretrained_file": str(GLOVE),
            "trainable": False,
            "zero_unknown": True,
            **dict(word_vectors),
        },
        **settings,
    }
    return vocab, TokenEmbedder.from_params(Params(params), vocab=vocab)


def ids_of(vocab, sentences):
    rows = [[vocab.get_token_index(word) for word in words] for words in sentences]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


SENTENCES = [["the", "mayor", "xyzzy"], ["mayor"], ["the", "never-seen"]]


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("with_words", [False, True])
def test_vectors_are_a_layer_over_the_words_of_each_sentence(layer, with_words):
    vocab, embedder = build(layer=layer, with_words=with_words)
    ids = ids_of(vocab, SENTENCES)
    found = embedder(ids)
    assert found.shape == (3, 3, embedder.get_output_dim())
    assert embedder.get_output_dim() == 24 + 100 * with_words
    encoder = read_cove_encoder(WEIGHTS)
    # Sentences may be in lists.
    nested = torch.stack([ids, ids.flip(0)])
    torch.testing.assert_close(embedder(nested), torch.stack([found, found.flip(0)]))
    assert not any(parameter.requires_grad for parameter in embedder.parameters())
    for row, words in enumerate(SENTENCES):
        vectors = embedder.word_vectors(ids[row : row + 1, : len(words)])
        expected = encoder(vectors, torch.ones(1, len(words), dtype=torch.bool))[layer - 1, 0]
        torch.testing.assert_close(found[row, : len(words), -24:], expected)
        assert bool((found[row, len(words) :] == 0).all())
        if with_words:
            assert torch.equal(found[row, : len(words), :100], vectors[0])
    # Neither the word of the corpus that the file lacks nor the unknown one has a vector.
    assert not embedder.word_vectors(ids)[0, 2].any() and not embedder.word_vectors(ids)[2, 1].any()
    assert embedder.word_vectors(ids)[0, 1].any()


def test_wrong_settings_are_named():
    with pytest.raises(ConfigurationError, match="expected `layer` 1 or 2, found 3"):
        build(layer=3)
    with pytest.raises(ConfigurationError, match="not trained, .* Set `trainable: false`"):
        build(word_vectors={"trainable": True})
    narrow = {"embedding_dim": 5, "pretrained_file": None}
    with pytest.raises(ConfigurationError, match="100 wide, and `word_vectors` are 5 wide"):
        build(word_vectors=narrow)
    with pytest.raises(ConfigurationError, match="/nowhere.pth does not exist"):
        build(weight_file="/nowhere.pth")


def test_a_trained_archive_needs_neither_file(tmp_path, monkeypatch):
    for name, path in (("ELMO_COVE", WEIGHTS), ("ELMO_GLOVE", GLOVE)):
        monkeypatch.setenv(name, shutil.copy(path, tmp_path))
    out = tmp_path / "out"
    overrides = {"trainer.num_epochs": 1, "dataset_reader.max_instances": 40}
    model = train_model_from_file(
        PROJECT / "fixtures/experiments/sst_cove.jsonnet", out, overrides=overrides
    )
    line = {"sentence": "The mayor saw a quiet film."}
    expected = Predictor.from_archive(load_archive(out / "model.tar.gz")).predict_json(line)
    (tmp_path / WEIGHTS.name).write_bytes(b"another")
    changed = Predictor.from_archive(load_archive(out / "model.tar.gz")).predict_json(line)
    (tmp_path / WEIGHTS.name).unlink()
    (tmp_path / GLOVE.name).unlink()
    moved = Predictor.from_archive(load_archive(out / "model.tar.gz")).predict_json(line)
    assert expected == changed == moved
    pack(out / "model.tar.gz", tmp_path / "int8.tar.gz", int8=True)
    packed = Predictor.from_archive(load_archive(tmp_path / "int8.tar.gz")).predict_json(line)
    assert packed["probabilities"] == pytest.approx(expected["probabilities"], abs=0.05)
    embedder = model.text_field_embedder.token_embedder_words
    found = read_cove_encoder(WEIGHTS).state_dict()
    for name, value in embedder.cove_encoder.state_dict().items():
        assert torch.equal(value, found[name])
