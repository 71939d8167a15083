"""What bilm-tf's `dump_weights` calls the cells of models unlike the published ones."""

import re

import h5py
import pytest

from elmo_plugin.bilm import load_weights, save_weights
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import SlowBilm, assert_layers_equal, read_arrays

WORDS = ["They", "play", "naïve", "chess"]
PARTS = {"W_0": "kernel", "B": "bias", "W_P_0": "projection/kernel"}


def dump(bilm, path, drop=None):
    """Writes a biLM and gives its cells the names that TensorFlow's variables have in a dump."""
    save_weights(bilm, path)
    lstm = bilm.options.lstm
    with h5py.File(path, "a") as file:
        for name in read_arrays(path):
            dumped = name
            if lstm.n_layers == 1:
                dumped = dumped.replace("MultiRNNCell/Cell0/", "")
            if not bilm.options.bidirectional and name.startswith("RNN_0/"):
                *_, part = name.split("/")
                dumped = dumped.replace("RNN_0/RNN/", "rnn/").replace(part, PARTS[part])
            if drop and re.search(drop, name):
                del file[name]
            elif dumped != name:
                file.move(name, dumped)
    return path


@pytest.mark.parametrize(
    "changes, name",
    [
        (dict(n_layers=1), "RNN_1/RNN/LSTMCell/W_P_0"),
        (dict(bidirectional=False), "rnn/MultiRNNCell/Cell1/LSTMCell/projection/kernel"),
        (dict(bidirectional=False, n_layers=1), "rnn/LSTMCell/bias"),
    ],
)
def test_cells_under_other_names_are_read_and_written_under_the_published_ones(
    make_bilm, tmp_path, changes, name
):
    bilm, read = make_bilm(seed=1, **changes), make_bilm(seed=2, **changes)
    save_weights(bilm, tmp_path / "published.hdf5")
    dumped = dump(bilm, tmp_path / "dumped.hdf5")
    assert name in read_arrays(dumped)
    load_weights(read, dumped)
    slow = SlowBilm(bilm.options.source, read_arrays(tmp_path / "published.hdf5"))
    layers = read(read.characters.batch_ids([WORDS])).layers[:, 0]
    assert_layers_equal(layers, slow.layers(WORDS))
    save_weights(read, tmp_path / "again.hdf5")
    assert (tmp_path / "again.hdf5").read_bytes() == (tmp_path / "published.hdf5").read_bytes()


def test_a_message_has_the_names_of_the_file(make_bilm, tmp_path):
    dumped = dump(make_bilm(bidirectional=False, n_layers=1), tmp_path / "dumped.hdf5")
    with pytest.raises(
        ConfigurationError, match=r"\(12, 84\) for tensor rnn/LSTMCell/kernel, found"
    ):
        load_weights(make_bilm(bidirectional=False, n_layers=1, dim=21), dumped)
    with pytest.raises(ConfigurationError, match="RNN_1/.*W_0, found none"):
        load_weights(make_bilm(n_layers=1), dumped)


@pytest.mark.parametrize(
    "changes, drop",
    [
        (dict(projection_dim=20), "W_P_0"),
        (dict(projection_dim=20, n_layers=1, proj_clip=None), "W_P_0"),
        (dict(projection_dim=20, bidirectional=False), "W_P_0"),
        (dict(projection_dim=23), "CNN_proj"),
        (dict(projection_dim=23, dim=23), "CNN_proj|W_P_0"),
    ],
)
def test_a_projection_to_as_many_as_there_are_may_be_missing(make_bilm, tmp_path, changes, drop):
    read = make_bilm(seed=2, **changes)
    bilm = make_bilm(seed=1, **changes)
    load_weights(read, dump(bilm, tmp_path / "dumped.hdf5", drop))
    save_weights(bilm, tmp_path / "published.hdf5")
    arrays = read_arrays(tmp_path / "published.hdf5")
    kept = {name: array for name, array in arrays.items() if not re.search(drop, name)}
    layers = read(read.characters.batch_ids([WORDS])).layers[:, 0]
    # The slow loop projects and clips only where there is a matrix.
    assert_layers_equal(layers, SlowBilm(bilm.options.source, kept).layers(WORDS))


def test_projections_are_missing_everywhere_or_nowhere(make_bilm, tmp_path):
    bilm = make_bilm(projection_dim=20)
    dumped = dump(bilm, tmp_path / "dumped.hdf5", "RNN_1/.*Cell1/.*W_P_0")
    with pytest.raises(ConfigurationError, match="RNN_1/.*Cell1/.*W_P_0, found none"):
        load_weights(bilm, dumped)
