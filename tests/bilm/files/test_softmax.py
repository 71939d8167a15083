"""The softmax of a language model: written, read, refused."""

import shutil

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError

from elmo_plugin.bilm import save_weights
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax, save_softmax
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


def test_a_softmax_stands_in_a_relative_folder_too(softmax, options, tmp_path, monkeypatch):
    save_softmax(softmax, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_softmax("softmax.hdf5", options).words == WORDS


@pytest.mark.parametrize("folder", ["~", "file://{}"])
def test_a_softmax_is_found_beside_weights_with_any_path(
    softmax, make_bilm, options, tmp_path, monkeypatch, folder
):
    monkeypatch.setenv("HOME", str(tmp_path))
    weight_file = f"{folder.format(tmp_path)}/weights.hdf5"
    save_weights(make_bilm(bidirectional=False), tmp_path / "weights.hdf5")
    assert find_softmax(weight_file, options) is None
    save_softmax(softmax, tmp_path)
    assert find_softmax(weight_file, options).words == WORDS


def refused(path, options, *expected):
    with pytest.raises(ConfigurationError) as error:
        find_softmax(path, options)
    for part in expected:
        assert part in str(error.value)


def test_a_softmax_of_another_width_is_refused_with_both(softmax, make_bilm, tmp_path):
    save_softmax(softmax, tmp_path)
    refused(
        tmp_path / "softmax.hdf5",
        make_bilm(projection_dim=None).options,
        str(tmp_path / "softmax.hdf5"),
        "expected a softmax 20 wide, as the output of one direction, found 6",
    )


def test_rows_and_words_must_be_as_many(softmax, options, tmp_path):
    save_softmax(softmax, tmp_path)
    (tmp_path / "vocabulary.txt").write_text("\n".join(WORDS[:-1]) + "\n")
    refused(
        tmp_path / "softmax.hdf5",
        options,
        "does not fit its vocabulary: expected 6 rows, one per word, found 7 in the weight and 7",
    )
    with h5py.File(tmp_path / "softmax.hdf5", "a") as file:
        del file["softmax/W"]
        file["softmax/W"] = numpy.zeros((6, 6))
    refused(tmp_path / "softmax.hdf5", options, "found 6 in the weight and 7 in the bias")


def test_missing_files_and_tensors_are_named(softmax, options, tmp_path):
    save_softmax(softmax, tmp_path)
    with h5py.File(tmp_path / "half.hdf5", "w") as file:
        file["softmax/b"] = numpy.zeros(7)
    half = tmp_path / "half.hdf5"
    refused(half, options, "a tensor softmax/W of 2 axes, found none", "elmo export")
    (tmp_path / "vocabulary.txt").unlink()
    refused(tmp_path / "softmax.hdf5", options, "vocabulary.txt does not exist")
    with h5py.File(tmp_path / "softmax.hdf5", "a") as file:
        del file["softmax/b"]
        file["softmax/b"] = numpy.zeros((7, 1))
    refused(tmp_path / "softmax.hdf5", options, "softmax/b of 1 axes, found one of shape (7, 1)")


def test_a_vocabulary_of_something_else_is_refused_with_its_line(softmax, options, tmp_path):
    save_softmax(softmax, tmp_path)
    (tmp_path / "vocabulary.txt").write_text("<S>\n</S>\nthe\n")
    refused(tmp_path / "softmax.hdf5", options, "vocabulary.txt:3: expected `<UNK>`, found `the`")


def test_a_damaged_softmax_is_not_taken_for_the_weights_of_the_bilm(softmax, options, tmp_path):
    path = tmp_path / "softmax.hdf5"
    save_softmax(softmax, tmp_path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ConfigurationError, match=f"^{path} cannot be read; it is damaged") as error:
        find_softmax(path, options)
    assert "weight_file" not in str(error.value)
