import shutil

import numpy
import pytest
import torch

from elmo_plugin.elmo import embed_sentences

reason = "needs sentence-transformers: pip install '.[sentence-transformers]'"
sentence_transformers = pytest.importorskip("sentence_transformers", reason=reason)

from sentence_transformers import SentenceTransformer  # noqa: E402
from sentence_transformers.sentence_transformer.modules import Pooling  # noqa: E402

from elmo_plugin.integrations.for_sentence_transformers import ElmoTokens  # noqa: E402

TEXTS = ["They play chess.", "Chess began in the park, didn't it?", ""]
WORDS = [["They", "play", "chess", "."], "Chess began in the park , did n't it ?".split(), []]


def make(*files):
    tokens = ElmoTokens(*map(str, files))
    pooling = Pooling(tokens.get_embedding_dimension())
    return SentenceTransformer(modules=[tokens, pooling], device="cpu")


def test_texts_have_the_mean_of_their_tokens(shared_bilm):
    found = make().encode(TEXTS)
    for vector, layers in zip(found, embed_sentences(shared_bilm, WORDS)):
        expected = layers.mean(dim=(0, 1)) if layers.size(1) else torch.zeros(layers.size(2))
        numpy.testing.assert_allclose(vector, expected, atol=1e-5)
    assert found.shape == (3, shared_bilm.output_dim)


def test_the_bilm_may_have_one_name(bilm, tmp_path):
    bilm.save_pretrained(tmp_path)
    tokens = ElmoTokens(bilm=str(tmp_path))
    for found, expected in zip(tokens.elmo.bilm.parameters(), bilm.parameters(), strict=True):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("include_prompt", [True, False])
def test_words_and_a_prompt_are_read(shared_bilm, include_prompt):
    tokens = ElmoTokens()
    pooling = Pooling(tokens.get_embedding_dimension(), include_prompt=include_prompt)
    model = SentenceTransformer(modules=[tokens, pooling], device="cpu")
    numpy.testing.assert_allclose(model.encode(WORDS[:2]), model.encode(TEXTS[:2]), atol=1e-6)
    (layers,) = embed_sentences(shared_bilm, [["query", ":", *WORDS[0]]])
    found = model.encode(TEXTS[:1], prompt="query: ")
    expected = layers if include_prompt else layers[:, 2:]
    numpy.testing.assert_allclose(found[0], expected.mean(dim=(0, 1)), atol=1e-5)


def test_training_changes_the_weights_of_the_layers_only():
    model = make()
    trained = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"0.elmo.mixes.0.layer_scores", "0.elmo.mixes.0.gamma"}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        vectors = model(model.preprocess(TEXTS[:2]))["sentence_embedding"]
        losses.append(torch.cosine_similarity(*vectors, dim=0))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0]


def test_a_step_of_the_trainer_does_not_prepare_the_weights_anew():
    model = make().train()
    bilm = model[0].elmo.bilm
    version = bilm.weights_version
    model.train()
    assert bilm.weights_version == version
    assert not model.eval()[0].elmo.training


def test_a_stored_model_needs_no_other_file(options_file, weight_file, tmp_path):
    files = [shutil.copy(file, tmp_path) for file in (options_file, weight_file)]
    model = make(*files)
    with torch.no_grad():
        model[0].elmo.mixes[0].layer_scores.copy_(torch.tensor([1.0, -1.0, 0.5]))
    model.save(str(tmp_path / "stored"))
    for file in files:
        shutil.os.remove(file)
    (tmp_path / "stored").rename(tmp_path / "moved")
    again = SentenceTransformer(str(tmp_path / "moved"), device="cpu")
    numpy.testing.assert_allclose(again.encode(TEXTS), model.encode(TEXTS), atol=1e-6)
