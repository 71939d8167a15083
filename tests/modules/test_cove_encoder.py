"""The encoder of CoVe against PyTorch's LSTM of two layers."""

from pathlib import Path

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_plugin.modules.cove_encoder import CoveEncoder
from elmo_plugin.modules.cove_files import read_cove_encoder

WEIGHTS = Path(__file__).parents[2] / "fixtures/cove/weights.pth"
LENGTHS = [7, 1, 4, 7, 2]


@pytest.fixture(scope="module")
def encoder():
    return read_cove_encoder(WEIGHTS)


def make_batch(lengths, input_dim=100):
    generator = torch.Generator().manual_seed(1)
    vectors = torch.randn(len(lengths), max(lengths), input_dim, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    return vectors, mask


def torch_lstm(num_layers):
    """PyTorch's LSTM with the weights of the first layers of the file."""
    lstm = torch.nn.LSTM(100, 12, num_layers=num_layers, bidirectional=True, batch_first=True)
    state = torch.load(WEIGHTS, weights_only=True)
    lstm.load_state_dict({name: state[name] for name in lstm.state_dict()})
    return lstm.double()


@pytest.mark.parametrize("lengths", [LENGTHS, [3], [5, 2], [1] * 40])
def test_each_layer_is_that_of_torch_over_packed_sentences(encoder, lengths):
    vectors, mask = make_batch(lengths)
    with torch.no_grad():
        layers = encoder(vectors, mask)
        for number in (1, 2):
            packed = pack_padded_sequence(
                vectors.double(), torch.tensor(lengths), batch_first=True, enforce_sorted=False
            )
            expected, _ = pad_packed_sequence(torch_lstm(number)(packed)[0], batch_first=True)
            torch.testing.assert_close(layers[number - 1].double(), expected, rtol=1e-5, atol=1e-6)
    assert layers.shape == (2, len(lengths), max(lengths), encoder.output_dim)


def test_padding_and_the_order_of_the_batch_change_nothing(encoder):
    vectors, mask = make_batch(LENGTHS)
    layers = encoder(vectors, mask)
    assert bool((layers[:, ~mask] == 0).all())
    longer = torch.nn.functional.pad(vectors, (0, 0, 0, 3), value=9.0)
    found = encoder(longer, torch.nn.functional.pad(mask, (0, 3)))[:, :, :-3]
    torch.testing.assert_close(found, layers)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(encoder(vectors[order], mask[order]), layers[:, order])
    for row, length in enumerate(LENGTHS):
        alone = encoder(vectors[row : row + 1, :length], mask[row : row + 1, :length])
        torch.testing.assert_close(alone[:, 0], layers[:, row, :length])


def test_an_empty_sentence_has_no_vectors(encoder):
    layers = encoder(torch.ones(2, 3, 100), torch.tensor([[True] * 3, [False] * 3]))
    assert bool((layers[:, 1] == 0).all()) and bool((layers[:, 0] != 0).any())
    assert encoder(torch.ones(2, 0, 100), torch.ones(2, 0, dtype=torch.bool)).shape == (2, 2, 0, 24)


def test_an_archive_of_an_earlier_version_is_read(encoder):
    of_file = torch.load(WEIGHTS, weights_only=True)
    earlier = {}
    for name, value in of_file.items():
        part, _, layer = name.partition("_l")
        direction = "backward" if layer.endswith("_reverse") else "forward"
        stem = f"inner.{direction}_layers.{layer[0]}."
        if part == "bias_ih":
            earlier[f"{stem}bias"] = value + of_file[f"bias_hh_l{layer}"]
        elif part != "bias_hh":
            whose = "input" if part == "weight_ih" else "recurrent"
            earlier[f"{stem}{whose}.weight"] = value
    model = torch.nn.ModuleDict({"inner": CoveEncoder(100, 12)})
    model.load_state_dict(earlier)
    batch = make_batch(LENGTHS)
    torch.testing.assert_close(model["inner"](*batch), encoder(*batch))
