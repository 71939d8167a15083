"""The softmax of a language model: written, read, refused."""

import shutil

import h5py
import numpy
import pytest
import torch

from elmo_plugin.bilm import save_weights
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax, save_softmax
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.files.test_weight_files import cut, put
from tests.bilm.trained import COUNTS, WORDS


@pytest.fixture
def options(make_bilm):
    return make_bilm(bidirectional=False).options


@pytest.fixture
def softmax():
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(len(WORDS), 6, generator=generator)
    return SoftmaxWeights(weight, torch.randn(len(WORDS), generator=generator), WORDS, COUNTS)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("counts", [COUNTS, None])
def test_a_softmax_written_and_read_again_is_the_same(softmax, options, tmp_path, dtype, counts):
    softmax = SoftmaxWeights(softmax.weight, softmax.bias, WORDS, counts)
    save_softmax(softmax, tmp_path, dtype)
    read = find_softmax(tmp_path / "softmax.hdf5", options)
    kind = getattr(torch, dtype)
    assert torch.equal(read.weight, softmax.weight.to(kind).float())
    assert torch.equal(read.bias, softmax.bias.to(kind).float())
    assert (read.words, read.counts) == (WORDS, counts)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["softmax.hdf5", "vocabulary.txt"]


def test_names_shapes_and_lines_are_those_of_bilm_tf(softmax, tmp_path):
    save_softmax(softmax, tmp_path)
    with h5py.File(tmp_path / "softmax.hdf5") as file:
        assert file["softmax/W"].shape == (len(WORDS), 6)
        assert file["softmax/b"].shape == (len(WORDS),)
        assert file["softmax/W"].dtype == numpy.float32
    lines = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert lines[:5] == ["<S>\t10", "</S>\t10", "<UNK>\t3", "the\t9", "naïve\t4"]
    save_softmax(SoftmaxWeights(softmax.weight, softmax.bias, WORDS), tmp_path)
    assert (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").splitlines() == WORDS


def test_a_weight_file_may_hold_the_softmax_too(softmax, make_bilm, options, tmp_path):
    save_softmax(softmax, tmp_path)
    save_weights(make_bilm(bidirectional=False), tmp_path / "weights.hdf5")
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        file["softmax/W"], file["softmax/b"] = softmax.weight.numpy(), softmax.bias.numpy()
    shutil.move(tmp_path / "vocabulary.txt", tmp_path / "words.txt")
    read = find_softmax(tmp_path / "weights.hdf5", options, tmp_path / "words.txt")
    assert torch.equal(read.weight, softmax.weight)


@pytest.mark.parametrize("folder", [".", "~", "file://{}"])
def test_a_softmax_is_found_beside_weights_with_any_path(
    softmax, make_bilm, options, tmp_path, monkeypatch, folder
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    weight_file = f"{folder.format(tmp_path)}/weights.hdf5"
    save_weights(make_bilm(bidirectional=False), tmp_path / "weights.hdf5")
    assert find_softmax(weight_file, options) is None
    save_softmax(softmax, tmp_path)
    assert find_softmax(weight_file, options).words == WORDS


def rewritten(words):
    return lambda folder: (folder / "vocabulary.txt").write_text("\n".join(words) + "\n")


def with_array(name, shape):
    return lambda folder: put(name, numpy.zeros(shape))(folder / "softmax.hdf5")


@pytest.mark.parametrize(
    "spoil, expected",
    [
        (with_array("softmax/W", (7, 20)), "expected a weight of shape (7, 6), "),
        (with_array("softmax/W", (6, 6)), "a bias of shape (7,), found (6, 6) and (7,)"),
        (with_array("softmax/b", (7, 1)), "found (7, 6) and (7, 1)"),
        (
            lambda folder: put("softmax/W", None)(folder / "softmax.hdf5"),
            "the tensors softmax/W and softmax/b, found softmax/b",
        ),
        (rewritten(WORDS[:-1]), "expected a weight of shape (6, 6), the number of words"),
        (rewritten(["<S>", "</S>", "the"]), "vocabulary.txt:3: expected `<UNK>`, found `the`"),
        (lambda folder: (folder / "vocabulary.txt").unlink(), "vocabulary.txt does not exist"),
        (lambda folder: cut(folder / "softmax.hdf5"), "softmax.hdf5 cannot be read; it is damaged"),
    ],
)
def test_a_softmax_that_cannot_be_used_is_refused(softmax, options, tmp_path, spoil, expected):
    save_softmax(softmax, tmp_path)
    spoil(tmp_path)
    with pytest.raises(ConfigurationError) as error:
        find_softmax(tmp_path / "softmax.hdf5", options)
    assert expected in str(error.value) and str(tmp_path) in str(error.value)
    assert "weight_file" not in str(error.value)
