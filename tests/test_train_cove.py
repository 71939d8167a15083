"""`examples/train_cove.py`, which trains an encoder for CoVe."""

import json
import runpy
import sys

import pytest
import torch

from elmo_plugin.modules.cove_files import read_cove_encoder
from tests.guide import PROJECT

SCRIPT = str(PROJECT / "examples/train_cove.py")
CORPUS = PROJECT / "fixtures/corpora/mt"
VECTORS = PROJECT / "fixtures/corpora/glove/vectors.100d.txt.gz"


def train(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [SCRIPT, *map(str, arguments)])
    with torch.random.fork_rng():
        runpy.run_path(SCRIPT, run_name="__main__")


def test_it_learns_to_translate_and_writes_an_encoder(monkeypatch, tmp_path, capsys):
    settings = ("--epochs", 6, "--dim", 32, "--words-per-batch", 128, "--lr", 0.02)
    train(monkeypatch, CORPUS, VECTORS, tmp_path / "cove.pth", *settings)
    epochs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["epoch"] for each in epochs] == list(range(6))
    assert epochs[-1]["perplexity"] < 3 < epochs[0]["perplexity"]
    assert epochs[-1]["BLEU"] > 40 > epochs[0]["BLEU"]

    encoder = read_cove_encoder(tmp_path / "cove.pth")
    assert (encoder.input_dim, encoder.output_dim) == (100, 64)
    lstm = torch.nn.LSTM(100, 32, num_layers=2, bidirectional=True, batch_first=True)
    lstm.load_state_dict(torch.load(tmp_path / "cove.pth", weights_only=True))
    vectors = torch.randn(3, 5, 100)
    with torch.no_grad():
        found = encoder(vectors, torch.ones(3, 5, dtype=torch.bool))[1]
        torch.testing.assert_close(found, lstm(vectors)[0])


@pytest.fixture(scope="module")
def model():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        vectors = torch.nn.functional.pad(torch.randn(8, 6), (0, 0, 2, 0))
        return runpy.run_path(SCRIPT)["Translator"](vectors, 12, 5).eval()


SOURCE = torch.tensor([[2, 3, 4, 5], [6, 1, 0, 0], [7, 8, 9, 0]])
TARGET = torch.tensor([[2, 5, 3, 0, 0], [2, 6, 7, 8, 3], [2, 4, 5, 3, 0]])


def test_attention_and_input_feeding_are_those_of_the_equations(model):
    """Luong et al. (2015), equations 5, 6 and 8 (general), one sentence and word at a time."""
    with torch.no_grad():
        encoded, mask, states = model.encode(SOURCE)
        states = model.step(TARGET[:, 0], states, encoded, mask)
        found = model.step(TARGET[:, 1], states, encoded, mask)
        for row, length in enumerate((4, 2, 3)):
            hidden = torch.cat([model.embedding(TARGET[row, 1]), states[-1][row]])
            for cell, (h, c) in zip(model.cells, states[:-1]):
                hidden, _ = cell(hidden, (h[row], c[row]))
            scores = torch.stack([model.query(hidden) @ encoded[row, n] for n in range(length)])
            context = sum(w * encoded[row, n] for n, w in enumerate(scores.softmax(dim=0)))
            expected = model.combination(torch.cat([context, hidden])).tanh()
            torch.testing.assert_close(found[-1][row], expected)
