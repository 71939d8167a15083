from pathlib import Path

import numpy
import pytest
import torch

from elmo_plugin import embed_sentences
from elmo_plugin.analysis.representations import (
    BilmLayers,
    CoveLayers,
    StaticVectors,
    random_bilm,
)
from elmo_plugin.modules.cove_files import read_cove_encoder
from elmo_plugin.util.errors import ConfigurationError

FIXTURES = Path(__file__).parents[2] / "fixtures"

SENTENCES = [["They", "play"], [], ["The", "play", "began", "!"]]


def arrays(representation):
    return [layers.tolist() for layers in representation.embed(SENTENCES)]


def test_a_random_bilm_has_the_shape_of_the_trained_one_and_depends_on_the_seed_only(shared_bilm):
    first = BilmLayers(random_bilm(shared_bilm.options, 3))
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    again = BilmLayers(random_bilm(shared_bilm.options, 3))
    # Random numbers outside stay as they were.
    assert torch.random.get_rng_state().equal(before)
    other = BilmLayers(random_bilm(shared_bilm.options, 4))
    trained = BilmLayers(shared_bilm)
    assert first.layers == trained.layers and first.dim == trained.dim
    assert first.fingerprint == again.fingerprint and arrays(first) == arrays(again)
    assert len({first.fingerprint, other.fingerprint, trained.fingerprint}) == 3
    assert arrays(first) != arrays(other) != arrays(trained)


def test_static_vectors_fall_back_on_lower_case_and_then_on_zeros(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 2\nplay 3 4\nThey 5 6\nbegan 7 8\n")
    words = {word for sentence in SENTENCES for word in sentence}
    representation = StaticVectors(path, words)
    assert representation.layers == ["vectors.txt"] and representation.dim == 2
    assert arrays(representation) == [
        [[[5, 6], [3, 4]]],
        [[]],
        [[[1, 2], [3, 4], [7, 8], [0, 0]]],
    ]
    assert next(representation.embed([["play"]])).dtype == numpy.float32


def test_static_vectors_are_identified_by_what_they_give(tmp_path):
    lines = ["the 1 2\n", "play 3 4\n", "unused 0 0\n"]
    identities = []
    for number, content in enumerate([lines, lines[:2], lines[::-1], ["the 1 2\n", "play 3 5\n"]]):
        path = tmp_path / f"{number}.txt"
        path.write_text("".join(content))
        identities.append(StaticVectors(path, {"the", "play"}).fingerprint)
    assert identities[0] == identities[1] == identities[2] != identities[3]


def test_layers_of_a_bilm_are_those_of_embed_sentences(shared_bilm):
    representation = BilmLayers(shared_bilm)
    assert representation.layers == ["token layer", "layer 1", "layer 2"]
    assert representation.dim == shared_bilm.output_dim
    expected = [layers.tolist() for layers in embed_sentences(shared_bilm, SENTENCES)]
    assert arrays(representation) == expected


def test_cove_is_the_encoder_over_the_static_vectors():
    words = {word for sentence in SENTENCES for word in sentence}
    static = StaticVectors(FIXTURES / "corpora/glove/vectors.100d.txt.gz", words)
    encoder = read_cove_encoder(FIXTURES / "cove/weights.pth")
    representation = CoveLayers(encoder, static)
    assert representation.layers == ["layer 1", "layer 2"] and representation.dim == 24
    assert representation.fingerprint != static.fingerprint
    found = list(representation.embed(SENTENCES))
    assert [layers.shape for layers in found] == [(2, 2, 24), (2, 0, 24), (2, 4, 24)]
    for vectors, layers in zip(static.embed(SENTENCES), found):
        mask = torch.ones(1, vectors.shape[1], dtype=torch.bool)
        expected = encoder(torch.from_numpy(vectors), mask)[:, 0]
        torch.testing.assert_close(torch.from_numpy(layers), expected)


@pytest.mark.parametrize(
    "content, error, message",
    [
        ("die 1 2\n", ValueError, "expected vectors of the words of the text, found none"),
        ("the 1 2\n", ConfigurationError, "100 wide, and those of x.txt are 2 wide"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(tmp_path, content, error, message):
    (tmp_path / "x.txt").write_text(content)
    with pytest.raises(error, match=message):
        static = StaticVectors(tmp_path / "x.txt", {"the"})
        CoveLayers(read_cove_encoder(FIXTURES / "cove/weights.pth"), static)
