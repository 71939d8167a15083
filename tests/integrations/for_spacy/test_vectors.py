import os
import shutil
import subprocess
import sys
import warnings

import numpy
import pytest
import spacy
import torch
from spacy.tokens import Doc

from elmo_plugin.elmo import embed_sentences
from elmo_plugin.util.errors import ConfigurationError

TEXT = "The play began. They play chess in the park!"
SENTENCES = [
    ["The", "play", "began", "."],
    ["They", "play", "chess", "in", "the", "park", "!"],
]


def layers_of(bilm, sentences):
    return numpy.concatenate(
        [layers.numpy() for layers in embed_sentences(bilm, sentences)], axis=1
    )


def cosine(one, two):
    return one @ two / numpy.sqrt((one @ one) * (two @ two))


@pytest.mark.parametrize("layers, chosen", [("all", [0, 1, 2]), ("last", [2]), ([0, 2], [0, 2])])
def test_a_document_has_the_layers_of_its_sentences(pipeline, shared_bilm, layers, chosen):
    doc = pipeline("elmo", layers=layers)(TEXT)
    expected = layers_of(shared_bilm, SENTENCES)
    numpy.testing.assert_allclose(doc._.elmo, expected, atol=1e-6)
    numpy.testing.assert_allclose(doc.tensor, expected[chosen].mean(axis=0), atol=1e-6)


def test_the_bilm_may_have_one_name(pipeline, bilm, tmp_path):
    with torch.no_grad():
        bilm.character_encoder.embedding.weight.mul_(2)
    bilm.save_pretrained(tmp_path / "bilm")
    expected = layers_of(bilm, SENTENCES)
    nlp = pipeline("elmo", bilm=tmp_path / "bilm")
    numpy.testing.assert_allclose(nlp(TEXT)._.elmo, expected, atol=1e-6)


def test_without_boundaries_the_document_is_one_sentence(shared_bilm):
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo")
    expected = layers_of(shared_bilm, [SENTENCES[0] + SENTENCES[1]])
    numpy.testing.assert_allclose(nlp(TEXT)._.elmo, expected, atol=1e-6)
    assert numpy.abs(expected - layers_of(shared_bilm, SENTENCES)).max() > 1e-3


def test_white_space_has_zeros_and_changes_no_other_token(pipeline):
    nlp = pipeline("elmo")
    plain, spaced = nlp("They play chess."), nlp("They  play\n\nchess.")
    is_space = [token.is_space for token in spaced]
    assert any(is_space)
    assert not spaced.tensor[is_space].any()
    numpy.testing.assert_allclose(spaced.tensor[numpy.logical_not(is_space)], plain.tensor)


def test_vectors_and_similarities_are_those_of_the_tensor(pipeline):
    nlp = pipeline("elmo")
    doc, other = nlp(TEXT), nlp("Chess began.")
    with warnings.catch_warnings():
        # spaCy's own, that a pipeline without word vectors has poor similarities.
        warnings.simplefilter("error")
        assert doc.similarity(other) == pytest.approx(
            cosine(doc.tensor.mean(axis=0), other.tensor.mean(axis=0)), abs=1e-5
        )
        assert doc[1].similarity(doc[5]) == pytest.approx(
            cosine(doc.tensor[1], doc.tensor[5]), abs=1e-5
        )
        assert doc[4:6].similarity(other[0]) == pytest.approx(
            cosine(doc.tensor[4:6].mean(axis=0), other.tensor[0]), abs=1e-5
        )
    numpy.testing.assert_array_equal(doc[4:6].vector, doc.tensor[4:6].mean(axis=0))
    assert doc.has_vector and doc[1].has_vector and doc[4:6].has_vector


def test_an_empty_document_has_no_vector(pipeline):
    nlp = pipeline("elmo")
    doc = nlp("")
    assert doc._.elmo.shape == (3, 0, 32) and doc.tensor.shape == (0, 32)
    assert not doc.has_vector and not doc.vector.any()
    assert doc.similarity(nlp(TEXT)) == 0.0


def test_the_batch_size_changes_nothing(pipeline):
    nlp = pipeline("elmo")
    texts = [TEXT, "", "Chess.", "They play chess in the park with friends."] * 3
    alone = [nlp(text).tensor for text in texts]
    for batch_size in (1, 5, 100):
        for doc, tensor in zip(nlp.pipe(texts, batch_size=batch_size), alone, strict=True):
            numpy.testing.assert_allclose(doc.tensor, tensor, atol=1e-6)


@pytest.mark.parametrize("store", ["disk", "bytes"])
def test_a_stored_pipeline_needs_no_other_file(
    pipeline, options_file, weight_file, tmp_path, store
):
    files = [shutil.copy(file, tmp_path) for file in (options_file, weight_file)]
    nlp = pipeline("elmo", options_file=files[0], weight_file=files[1], layers="last")
    nlp.to_disk(tmp_path / "stored")
    data = nlp.to_bytes()
    expected = nlp(TEXT).tensor
    for file in files:
        shutil.os.remove(file)
    (tmp_path / "stored").rename(tmp_path / "moved")
    if store == "disk":
        again = spacy.load(tmp_path / "moved")
    else:
        again = spacy.util.load_model_from_config(nlp.config).from_bytes(data)
    numpy.testing.assert_array_equal(again(TEXT).tensor, expected)
    again.to_disk(tmp_path / "moved")
    numpy.testing.assert_array_equal(spacy.load(tmp_path / "moved")(TEXT).tensor, expected)


def test_a_document_keeps_its_layers_when_it_is_stored(pipeline):
    doc = pipeline("elmo")(TEXT)
    with pytest.warns(UserWarning, match="W109"):
        again = Doc(doc.vocab).from_bytes(doc.to_bytes())
    numpy.testing.assert_array_equal(again._.elmo, doc._.elmo)
    numpy.testing.assert_array_equal(again.vector, doc.vector)


def test_a_dtype_of_lower_precision_is_close(pipeline):
    exact, close = (pipeline("elmo", dtype=dtype)(TEXT) for dtype in ("float32", "bfloat16"))
    difference = numpy.abs(exact.tensor - close.tensor).max() / numpy.abs(exact.tensor).max()
    assert 0 < difference < 0.02


@pytest.mark.parametrize(
    "config, message",
    [
        ({"options_file": "no/options.json"}, "no/options.json"),
        ({"layers": [3]}, "different numbers from 0"),
        ({"dtype": "float8"}, "Expected `dtype` to be one of"),
    ],
)
def test_a_wrong_setting_is_named_when_the_component_is_added(pipeline, config, message):
    with pytest.raises((ConfigurationError, FileNotFoundError), match=message):
        pipeline("elmo", **config)


def test_processes_can_be_forked_after_this_one_has_computed():
    script = """
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("elmo")
nlp("They play chess .")
print(len(list(nlp.pipe(["They play chess ."] * 8, n_process=2, batch_size=4))))
"""
    # With two threads, a forked process would wait for those that it lacks.
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    found = subprocess.run(command, env=environment, capture_output=True, timeout=300, check=True)
    assert found.stdout.split()[-1] == b"8"
