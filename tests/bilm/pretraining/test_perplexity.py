import math

import pytest
import torch

from elmo_plugin.bilm.pretraining.language_model import Perplexity

# Direction, losses of single predictions in nats.
BATCHES = [
    ("forward", [1.0, 2.5, 0.5]),
    ("backward", [3.0]),
    ("forward", [4.0]),
    ("backward", [0.25, 0.75, 2.0]),
]


def read(batches):
    perplexity = Perplexity()
    for direction, losses in batches:
        perplexity(direction, torch.tensor(losses).sum(), len(losses))
    return perplexity


def test_every_prediction_counts_the_same():
    metrics = read(BATCHES).get_metric()
    assert metrics == pytest.approx(
        {
            "forward_perplexity": math.exp((1.0 + 2.5 + 0.5 + 4.0) / 4),
            "backward_perplexity": math.exp((3.0 + 0.25 + 0.75 + 2.0) / 4),
            "perplexity": math.exp((8.0 / 4 + 6.0 / 4) / 2),
        }
    )


def test_a_direction_that_was_not_read_is_missing():
    metrics = read(BATCHES[:1]).get_metric()
    assert metrics.keys() == {"perplexity", "forward_perplexity"}
    assert metrics["perplexity"] == metrics["forward_perplexity"]


def test_reset_forgets():
    perplexity = read(BATCHES)
    before = perplexity.get_metric()
    assert perplexity.get_metric(reset=True) == before
    assert math.isnan(perplexity.get_metric()["perplexity"])
    perplexity("forward", torch.tensor(2.0), 2)
    assert perplexity.get_metric()["perplexity"] == pytest.approx(math.e)


@pytest.mark.parametrize(
    "loss, expected", [(1e4, math.inf), (math.inf, math.inf), (math.nan, math.nan)]
)
def test_a_loss_beyond_numbers_has_an_infinite_perplexity(loss, expected):
    found = read([("forward", [loss])]).get_metric()["perplexity"]
    assert found == pytest.approx(expected, nan_ok=True)
