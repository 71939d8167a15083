"""The biLMs that come with the project: whole, readable by AllenNLP, and models of English."""

from pathlib import Path

import pytest
import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo
from allennlp.modules.elmo import batch_to_ids

from elmo_plugin.bilm import load_bilm, save_weights
from elmo_plugin.bilm.files.find import softmax_of_bilm
from elmo_plugin.bilm.pretraining.next_word_loss import next_word_loss
from elmo_plugin.elmo import embed_sentences
from elmo_plugin.environment import set_defaults

PRETRAINED = Path(__file__).parent.parent / "pretrained"
SENTENCES = [
    "The river flows through the town and into the sea .".split(),
    "She was born in London and worked as a teacher for many years .".split(),
    "The album was released in 1998 and received good reviews .".split(),
]


# A source distribution does not have its weights.
IN_A_CHECKOUT = pytest.mark.skipif((PRETRAINED.parent / "PKG-INFO").exists(), reason="no weights")


@pytest.fixture(scope="module", params=["small", pytest.param("medium", marks=IN_A_CHECKOUT)])
def folder(request):
    return PRETRAINED / request.param


def load(folder):
    return load_bilm(folder)


@pytest.fixture(scope="module")
def bilm(folder):
    return load(folder)


def forward_loss(bilm, softmax, words):
    """Mean negative log-likelihood of the words and `</S>`, each from what stands before it."""
    rows = {word: row for row, word in enumerate(softmax.words)}
    with torch.no_grad():
        layers = bilm(bilm.characters.batch_ids([words])).layers
        dim = bilm.options.lstm.output_dim
        # Position 0 is <S>; the last, </S>, predicts nothing.
        hidden = layers[-1, 0, :-1, :dim]
        targets = torch.tensor([rows.get(word, rows["<UNK>"]) for word in [*words, "</S>"]])
        weight, bias = softmax.weight.float(), softmax.bias.float()
        return float(next_word_loss(hidden, weight, bias, targets)) / len(targets)


def test_the_small_one_is_the_default(monkeypatch):
    bilm = load(PRETRAINED / "small")
    for name in ("ELMO_OPTIONS", "ELMO_WEIGHTS"):
        monkeypatch.delenv(name)
    set_defaults()
    default = load_bilm()
    assert default.options == bilm.options
    assert all(
        torch.equal(ours, theirs)
        for ours, theirs in zip(default.parameters(), bilm.parameters(), strict=True)
    )


def test_no_file_is_larger_than_expected(folder):
    most = {"small": 16, "medium": 48}[folder.name] * 1024 * 1024
    for path in folder.iterdir():
        assert path.stat().st_size <= most, path


def test_allennlp_reads_it_and_agrees(folder, bilm, tmp_path):
    # AllenNLP adds 1 to the forget gate's bias in the type of the file: half of it gets lost in
    # float16. So the same weights in float32.
    weights = tmp_path / "weights.hdf5"
    save_weights(bilm, weights)
    theirs = AllenNlpElmo(str(folder / "options.json"), str(weights), 1, dropout=0.0)
    theirs = theirs.eval()._elmo_lstm
    # Its state starts at zero and is carried on: one batch only.
    with torch.no_grad():
        output = theirs(batch_to_ids(SENTENCES))["activations"]
    for row, ours in enumerate(embed_sentences(bilm, SENTENCES)):
        for layer in range(3):
            expected = output[layer][row, 1 : len(SENTENCES[row]) + 1]
            torch.testing.assert_close(ours[layer], expected, rtol=1e-5, atol=1e-5)


def test_it_expects_english_and_not_its_reverse(folder, bilm):
    softmax = softmax_of_bilm(folder)
    for words in SENTENCES:
        loss = forward_loss(bilm, softmax, words)
        assert loss < 5.5, words
        assert loss < forward_loss(bilm, softmax, [*reversed(words[:-1]), "."]) - 1.0, words
