import shutil
from pathlib import Path

import numpy
import pytest
import spacy
import torch
from spacy.cli.convert import convert
from spacy.cli.init_config import fill_config
from spacy.cli.train import train
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import SGD, set_dropout_rate

from elmo_plugin.elmo import Elmo
from elmo_plugin.integrations.for_spacy import elmo_tok2vec
from elmo_plugin.util.errors import ConfigurationError
from tests.guide import FIXTURES, PROJECT, blocks

SENTENCES = [["They", "play", "chess", "."], ["The", "play", "began"]]
TAGGED = [("I like green eggs", "N V J N"), ("Eat blue ham\n\nnow", "V J N _SP R")]


@pytest.fixture
def docs():
    nlp = spacy.blank("en")
    return [Doc(nlp.vocab, words=words) for words in SENTENCES]


def initialized(docs, **settings):
    model = elmo_tok2vec(**settings)
    model.initialize(X=docs)
    return model


def trained_parameters(model):
    return {n: p for n, p in model.shims[0].elmo.named_parameters() if p.requires_grad}


def oracle(docs, gradients, **settings):
    """The vectors of PyTorch's own forward pass, and its gradients."""
    elmo = Elmo(dropout=0.0, **settings).train()
    output = elmo(elmo.bilm.characters.batch_ids([[t.text for t in doc] for doc in docs]))
    vectors = [row[: len(doc)] for row, doc in zip(output, docs)]
    sum((v * torch.from_numpy(g)).sum() for v, g in zip(vectors, gradients)).backward()
    return vectors, {n: p.grad for n, p in elmo.named_parameters() if p.requires_grad}


def random_gradients(docs, width):
    generator = numpy.random.default_rng(0)
    return [generator.standard_normal((len(doc), width)).astype("float32") for doc in docs]


def test_the_bilm_may_have_one_name(docs, bilm, tmp_path):
    bilm.save_pretrained(tmp_path)
    model = initialized(docs, bilm=str(tmp_path))
    for found, expected in zip(model.predict(docs), initialized(docs).predict(docs)):
        numpy.testing.assert_array_equal(found, expected)
    with pytest.raises(ConfigurationError, match="nowhere is no biLM"):
        initialized(docs, bilm="nowhere")


@pytest.mark.parametrize("trainable", [False, True])
def test_vectors_and_gradients_are_those_of_pytorch(docs, trainable):
    model = initialized(docs, trainable=trainable)
    gradients = random_gradients(docs, model.get_dim("nO"))
    vectors, backprop = model.begin_update(docs)
    backprop(gradients)
    expected, expected_gradients = oracle(docs, gradients, trainable=trainable)
    predicted = model.predict(docs)
    for vector, prediction, wanted in zip(vectors, predicted, expected, strict=True):
        numpy.testing.assert_allclose(vector, wanted.detach(), atol=1e-5)
        numpy.testing.assert_allclose(prediction, wanted.detach(), atol=1e-5)
    found = {n: p.grad for n, p in trained_parameters(model).items()}
    assert any("bilm" in name for name in found) == trainable
    assert found.keys() == expected_gradients.keys()
    for name, gradient in expected_gradients.items():
        torch.testing.assert_close(found[name], gradient, atol=1e-5, rtol=1e-4)


def test_weights_are_prepared_once_for_many_batches(docs):
    model = initialized(docs)
    bilm = model.shims[0].elmo.bilm
    for step in (model.begin_update, model.predict):
        step(docs)
        version = bilm.weights_version
        step(docs)
        model.finish_update(SGD(0.1))
        assert bilm.weights_version == version


def test_a_prediction_after_an_update_has_the_new_weights(docs):
    model = initialized(docs, trainable=True)
    _, backprop = model.begin_update(docs)
    backprop(random_gradients(docs, model.get_dim("nO")))
    model.predict(docs)
    model.finish_update(SGD(0.1))
    found, elmo = model.predict(docs)[0], model.shims[0].elmo.eval()
    expected = elmo(elmo.bilm.characters.batch_ids(SENTENCES))[0].detach()
    numpy.testing.assert_allclose(found, expected, atol=1e-5)


def test_dropout_is_that_of_the_trainer(docs):
    model = initialized(docs)
    set_dropout_rate(model, 0.5)
    vectors, _ = model.begin_update(docs)
    share = numpy.mean([(vector == 0).mean() for vector in vectors])
    assert 0.3 < share < 0.7
    assert all((vector != 0).all() for vector in model.predict(docs))


def test_sentences_are_read_by_themselves_and_white_space_is_zero():
    nlp = spacy.blank("en")
    text = "They play\n\nchess. The play began."
    whole = nlp(text)
    nlp.add_pipe("sentencizer")
    divided, second = nlp(text), nlp("The play began.")
    model = initialized([whole])
    (of_whole,), (of_divided,), (of_second,) = (
        model.predict([doc]) for doc in (whole, divided, second)
    )
    assert divided[2].is_space and not of_divided[2].any()
    numpy.testing.assert_allclose(of_divided[-4:], of_second, atol=1e-6)
    assert numpy.abs(of_whole[-4:] - of_second).max() > 1e-3


def test_documents_without_words(docs):
    nlp = spacy.blank("en")
    model = initialized(docs)
    for empty in ([], [nlp("")], [nlp(" ")]):
        vectors, backprop = model.begin_update(empty)
        assert [v.shape for v in vectors] == [(len(doc), 32) for doc in empty]
        backprop(vectors)
        assert [v.shape for v in model.predict(empty)] == [(len(doc), 32) for doc in empty]


def test_without_initialization_the_error_says_so(docs):
    with pytest.raises(ConfigurationError, match="call `nlp.initialize"):
        elmo_tok2vec().predict(docs)


def tagger(options_file, weight_file, **settings):
    nlp = spacy.blank("en")
    settings.update(options_file=str(options_file), weight_file=str(weight_file))
    tok2vec = {"@architectures": "elmo.Tok2Vec.v1", **settings}
    model = {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}
    nlp.add_pipe("tagger", config={"model": model})
    return nlp


@pytest.mark.parametrize("trainable", [False, True])
def test_a_tagger_learns_and_is_stored_with_its_bilm(
    options_file, weight_file, tmp_path, trainable
):
    spacy.util.fix_random_seed(0)
    files = [shutil.copy(file, tmp_path) for file in (options_file, weight_file)]
    nlp = tagger(*files, trainable=trainable)
    examples = [
        Example.from_dict(nlp.make_doc(text), {"tags": tags.split()}) for text, tags in TAGGED
    ]
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.05
    elmo = nlp.get_pipe("tagger").model.get_ref("tok2vec").shims[0].elmo
    before = {name: tensor.clone() for name, tensor in elmo.bilm.lstm.state_dict().items()}
    losses = []
    for _ in range(100):
        losses.append(nlp.update(examples, sgd=optimizer, drop=0.1)["tagger"])
    assert losses[-1] < 0.3 * losses[0]
    changed = any(not torch.equal(before[n], t) for n, t in elmo.bilm.lstm.state_dict().items())
    assert changed == trainable
    assert elmo.mixes[0].layer_scores.any()
    for text, tags in TAGGED:
        assert [token.tag_ for token in nlp(text)] == tags.split()
    nlp.to_disk(tmp_path / "stored")
    for file in files:
        Path(file).unlink()
    again = spacy.load(tmp_path / "stored")
    for text, _ in TAGGED:
        scores = [
            each.get_pipe("tagger").model.predict([each.make_doc(text)])[0] for each in (nlp, again)
        ]
        numpy.testing.assert_allclose(scores[0], scores[1], atol=1e-6)
    # Training goes on.
    again.resume_training()
    assert again.update(examples)["tagger"] < losses[0]


def test_a_cache_changes_no_prediction(options_file, weight_file, tmp_path, monkeypatch):
    monkeypatch.setenv("ELMO_CACHE", str(tmp_path / "cache"))
    nlp = spacy.blank("en")
    doc = nlp("They play chess")
    plain, cached = (initialized([doc], cache=cache).predict([doc])[0] for cache in (False, True))
    # The cache has half precision.
    numpy.testing.assert_allclose(cached, plain, rtol=2e-3, atol=2e-3)
    assert any((tmp_path / "cache").iterdir())


def test_the_training_of_the_guide_ends_with_entities(tmp_path):
    (config,) = (b for b in blocks(PROJECT / "docs/spacy.md") if b.file == "config.cfg")
    shipped = f'bilm = "{PROJECT}/pretrained/small"'
    text = config.text.replace("options_file = null", shipped)
    (tmp_path / "config.cfg").write_text(text)
    fill_config(tmp_path / "full.cfg", tmp_path / "config.cfg")
    paths = {}
    for part in ("train", "dev"):
        convert(
            FIXTURES / f"corpora/ner/{part}.conll",
            tmp_path,
            converter="ner",
            silent=True,
            file_type="spacy",
        )
        paths[f"paths.{part}"] = str(tmp_path / f"{part}.spacy")
    train(tmp_path / "full.cfg", tmp_path / "out", overrides=paths)
    nlp = spacy.load(tmp_path / "out/model-best")
    assert nlp.meta["performance"]["ents_f"] > 0.5
    assert nlp("Ada Lovelace lives in London.").ents
