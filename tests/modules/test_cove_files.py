"""The encoder of CoVe against PyTorch's LSTM of two layers, and its files."""

from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_plugin.modules.cove_files import CoveEncoder, read_cove_encoder
from elmo_plugin.util.errors import ConfigurationError

WEIGHTS = Path(__file__).parents[2] / "fixtures/cove/weights.pth"
LENGTHS = [7, 1, 4, 7, 2]


def published(input_dim=6, hidden_dim=4, **settings):
    """The state dict of the LSTM that the authors have published, with other widths."""
    torch.manual_seed(0)
    settings = {"num_layers": 2, "bidirectional": True, **settings}
    return torch.nn.LSTM(input_dim, hidden_dim, **settings).state_dict()


@pytest.fixture
def save(tmp_path):
    def save(state, name="cove.pth", **settings):
        torch.save(state, tmp_path / name, **settings)
        return tmp_path / name

    return save


def layers(encoder):
    vectors = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(1))
    return encoder(vectors, torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))


def test_widths_are_those_of_the_file_and_no_random_numbers_are_drawn(save):
    path = save(published(input_dim=300, hidden_dim=7))
    before = torch.get_rng_state()
    encoder = read_cove_encoder(path)
    assert torch.equal(torch.get_rng_state(), before)
    assert (encoder.input_dim, encoder.hidden_dim, encoder.output_dim) == (300, 7, 14)
    assert not encoder.training
    assert not any(parameter.requires_grad for parameter in encoder.parameters())


@pytest.mark.parametrize(
    "settings",
    # The published file is older than PyTorch 1.6.
    [{}, {"_use_new_zipfile_serialization": False}],
)
def test_old_formats_and_half_precision_are_read(save, settings):
    expected = layers(read_cove_encoder(save(published())))
    found = layers(read_cove_encoder(save(OrderedDict(published()), "old.pth", **settings)))
    assert torch.equal(found, expected)
    halves = {name: torch.nn.Parameter(value.half()) for name, value in published().items()}
    found = layers(read_cove_encoder(save(halves, "half.pth", **settings)))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"weight_hh_l0": None}, 'Missing key.* "weight_hh_l0"'),
        ({"weight_ih_l1": None}, 'Missing key.* "weight_ih_l1"'),
        (
            {"weight_ih_l1": torch.zeros(16, 4)},
            r"size mismatch for weight_ih_l1: .* torch.Size\(\[16, 4\]\) .*\(\[16, 8\]\)",
        ),
        (
            {"bias_ih_l0": torch.zeros(15)},
            r"torch.nn.LSTM\(.*num_layers=2, bidirectional=True\), .* size mismatch for bias_ih_l0",
        ),
        ({"bias_hh_l0": torch.full((16,), float("nan"))}, "NaN or infinity in bias_hh_l0"),
        (published(num_layers=3), 'Unexpected key.* "weight_ih_l2"'),
        (published(proj_size=2), "Unexpected key"),
        ({"weight_ih_l0_reverse": 3.0}, '"weight_ih_l0_reverse", expected torch.Tensor'),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(save, change, message):
    state = {**published(), **change}
    path = save({name: value for name, value in state.items() if value is not None})
    with pytest.raises(ConfigurationError, match=f"cove.pth: .*{message}"):
        read_cove_encoder(path)


def test_other_files_are_refused_and_nothing_is_executed(save, tmp_path):
    with pytest.raises(ConfigurationError, match="none.pth does not exist. Set ELMO_COVE"):
        read_cove_encoder(tmp_path / "none.pth")
    with pytest.raises(ConfigurationError, match="holds more than tensors"):
        read_cove_encoder(save({"weight_ih_l1": CoveEncoder(2, 2)}, "executed.pth"))
    with pytest.raises(ConfigurationError, match="expected a state dict"):
        read_cove_encoder(save([torch.zeros(2)], "list.pth"))
    with pytest.raises(ConfigurationError, match="other.pth: expected the state dict of one torch"):
        read_cove_encoder(save({"embedding": torch.zeros(2)}, "other.pth"))
    (tmp_path / "cut.pth").write_bytes(save(published()).read_bytes()[:500])
    with pytest.raises(ConfigurationError, match="cut.pth cannot be read"):
        read_cove_encoder(tmp_path / "cut.pth")


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


def test_padding_empty_sentences_and_the_order_of_the_batch_change_nothing(encoder):
    vectors, mask = make_batch(LENGTHS)
    layers = encoder(vectors, mask)
    assert bool((layers[:, ~mask] == 0).all())
    longer = torch.nn.functional.pad(vectors, (0, 0, 0, 3), value=9.0)
    found = encoder(longer, torch.nn.functional.pad(mask, (0, 3)))[:, :, :-3]
    torch.testing.assert_close(found, layers)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(encoder(vectors[order], mask[order]), layers[:, order])
    empty = torch.cat([vectors[:1], vectors[:1]]), torch.stack([mask[0], ~mask[0]])
    found = encoder(*empty)
    torch.testing.assert_close(found[:, 0], layers[:, 0])
    assert bool((found[:, 1] == 0).all())
    assert encoder(torch.ones(2, 0, 100), torch.ones(2, 0, dtype=torch.bool)).shape == (2, 2, 0, 24)
