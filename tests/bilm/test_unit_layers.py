import pytest
import torch

from elmo_plugin.analysis.surprisal import Scorer
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.unit_layers import unit_layers
from elmo_plugin.util.errors import ConfigurationError

SENTENCES = [["They", "play"], ["the", "play", "began", "in", "the", "autumn"], ["chess"]]
WORDS = ["<S>", "</S>", "<UNK>", "the", "play", "They", "chess"]


def make_softmax(dim):
    torch.manual_seed(0)
    return SoftmaxWeights(torch.randn(len(WORDS), dim), torch.randn(len(WORDS)), WORDS, None)


def layers_of(bilm):
    """Of each sentence, shape `(num_layers, num_tokens, output_dim)`."""
    return [bilm(bilm.characters.batch_ids([words])).layers[:, 0] for words in SENTENCES]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"proj_clip": 0.05, "cell_clip": 0.1},
        {"n_layers": 3, "use_skip_connections": False, "proj_clip": None},
    ],
)
def test_layers_are_scaled_and_the_language_model_is_the_same(make_bilm, settings):
    bilm = make_bilm(**settings)
    softmax = make_softmax(bilm.options.lstm.output_dim)
    scaled, scaled_softmax, _ = unit_layers(bilm, softmax, SENTENCES)
    before, after = (torch.cat(layers_of(each), dim=1).double() for each in (bilm, scaled))
    factors = (after.square().mean(dim=(1, 2)) / before.square().mean(dim=(1, 2))).sqrt()
    torch.testing.assert_close(after, before * factors[:, None, None], rtol=1e-4, atol=1e-5)
    # One factor for the token layer, one for all others.
    torch.testing.assert_close(factors[1:], factors[1].expand(len(factors) - 1), rtol=1e-4, atol=0)
    squares = after.square().mean(dim=(1, 2))
    assert squares[0].item() == pytest.approx(1, rel=1e-5)
    assert squares[1:].mean().item() == pytest.approx(1, rel=1e-5)
    for words in SENTENCES:
        (one,), (other,) = (
            Scorer(model, weights).score([words])
            for model, weights in ((bilm, softmax), (scaled, scaled_softmax))
        )
        for direction in ("forward", "backward"):
            assert other.surprisal(direction) == pytest.approx(one.surprisal(direction), rel=1e-5)


def test_what_cannot_be_scaled_is_refused(make_bilm):
    with pytest.raises(ConfigurationError, match="whose token layer and LSTMs have projections"):
        unit_layers(make_bilm(projection_dim=None), None, SENTENCES)
    with pytest.raises(ConfigurationError, match="Expected words whose layers"):
        unit_layers(make_bilm(), None, [[], []])
