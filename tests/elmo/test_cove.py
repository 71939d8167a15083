"""CoVe vectors of sentences, without AllenNLP."""

from pathlib import Path

import numpy
import pytest
import torch

from elmo_plugin.elmo.cove import embed_with_cove
from elmo_plugin.modules.cove_files import read_cove_encoder

WEIGHTS = Path(__file__).parents[2] / "fixtures/cove/weights.pth"
SENTENCES = [["the", "play", "began"], [], ["play"], ["an", "unknown", "play", "the"]] * 3


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_sentences_have_the_layers_of_torch_and_unknown_words_are_zeros(batch_size):
    random = numpy.random.default_rng(0)
    vectors = {word: random.normal(size=100).astype("float32") for word in ("the", "play")}
    vectors["began"] = torch.randn(100)
    lstm = torch.nn.LSTM(100, 12, num_layers=2, bidirectional=True)
    lstm.load_state_dict(torch.load(WEIGHTS, weights_only=True))
    found = list(embed_with_cove(read_cove_encoder(WEIGHTS), vectors, SENTENCES, batch_size))
    assert len(found) == len(SENTENCES)
    for words, layers in zip(SENTENCES, found):
        assert layers.shape == (2, len(words), 24)
        if words:
            inputs = [torch.as_tensor(vectors.get(word, torch.zeros(100))) for word in words]
            with torch.no_grad():
                expected = lstm(torch.stack(inputs).unsqueeze(1))[0].squeeze(1)
            torch.testing.assert_close(layers[1], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [1, 99])
def test_vectors_of_another_width_are_named(width):
    encoder = read_cove_encoder(WEIGHTS)
    with pytest.raises(ValueError, match=rf"of 100 numbers, .* found shape \({width},\) for 'a'"):
        list(embed_with_cove(encoder, {"a": numpy.ones(width)}, [["a"]]))
