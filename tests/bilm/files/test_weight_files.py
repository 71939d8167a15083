"""Files of weights: read, written, refused."""

import json

import h5py
import numpy
import pytest
import torch
from safetensors.numpy import load_file
from safetensors.numpy import save_file as numpy_save_file
from safetensors.torch import save_file

from elmo_plugin.bilm import load_bilm, load_weights, save_weights
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import read_arrays
from tests.bilm.trained import StandIn, save_run, vocabulary

CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/"
FLOATS = "of type float16, float32, float64, found"


def raw(path):
    """The arrays as stored; `read_arrays` converts to float64."""
    if path.suffix == ".safetensors":
        return load_file(path)
    with h5py.File(path, "r") as opened:
        return {name: opened[name][...] for name in read_arrays(path)}


def put(name, array):
    """Writes an array into a file of weights, in place of one that is there."""

    def spoil(path):
        if path.suffix == ".safetensors":
            return numpy_save_file({**load_file(path), name: numpy.asarray(array)}, path)
        with h5py.File(path, "a") as opened:
            if name in opened:
                del opened[name]
            if array is not None:
                opened[name] = array

    return spoil


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def no_numbers(path):
    tensors = {name: torch.from_numpy(array) for name, array in load_file(path).items()}
    save_file({**tensors, "char_embed": tensors["char_embed"].bfloat16()}, path)


def with_external(path):
    with h5py.File(path, "a") as opened:
        del opened["CNN_proj/b_proj"]
        (path.parent / "secret").write_bytes(bytes(64))
        place = [(str(path.parent / "secret"), 0, 64)]
        opened.create_dataset("CNN_proj/b_proj", (16,), "f4", external=place)


def with_virtual(path):
    with h5py.File(path.parent / "secret", "w") as other:
        other["x"] = numpy.zeros(16, "f4")
    with h5py.File(path, "a") as opened:
        del opened["CNN_proj/b_proj"]
        layout = h5py.VirtualLayout(16, "f4")
        layout[:] = h5py.VirtualSource(path.parent / "secret", "x", 16)
        opened.create_virtual_dataset("CNN_proj/b_proj", layout)


def not_finite(value):
    array = numpy.ones(8)
    array[[2, 5]] = value
    return put("CNN/b_cnn_1", array)


NOT_FINITE = "CNN/b_cnn_1 of finite numbers within float32, found {} in 2 of 8 entries"
EXTERNAL = "CNN_proj/b_proj is an external or virtual dataset"
BOTH = [
    (cut, ["cannot be read", "damaged, cut short"]),
    (lambda path: path.write_bytes(b""), ["neither HDF5 nor safetensors"]),
    (lambda path: path.write_bytes(b"<html>404</html>\n" * 99), ["neither HDF5 nor safetensors"]),
    (lambda path: path.unlink(), ["does not exist", "`weight_file` (or ELMO_WEIGHTS)"]),
    *[(not_finite(x), [NOT_FINITE.format(x)]) for x in (numpy.nan, numpy.inf, -numpy.inf, 1e300)],
]
HDF5 = [
    *[(put("CNN/b_cnn_1", numpy.ones(8, d)), [f"{FLOATS} {d}. Write"]) for d in ("int8", "bool")],
    (put("CNN/b_cnn_1", numpy.ones(8, "complex64")), [f"{FLOATS} complex64"]),
    (put("CNN/b_cnn_1", [b"a"] * 8), [f"tensor CNN/b_cnn_1 {FLOATS} "]),
    (put("CNN/b_cnn_1", numpy.array([(1, 2.0)] * 8, "i4,f4")), [f"tensor CNN/b_cnn_1 {FLOATS} "]),
    (with_external, [EXTERNAL]),
    (with_virtual, [EXTERNAL]),
    (put("char_embed", h5py.Empty("f4")), ["shape (261, 8) for tensor char_embed, found ()"]),
    (put("char_embed", numpy.zeros((261, 9))), ["(261, 8)", "char_embed, found (261, 9)"]),
    (put("char_embed", numpy.zeros((262, 8))), ["found (262, 8)"]),
    (put("CNN_proj/W_proj", numpy.zeros((16, 48))), ["(48, 16)", "W_proj, found (16, 48)"]),
    (put("CNN/W_cnn_2", numpy.zeros((3, 8, 16))), ["(1, 3, 8, 16)", "found (3, 8, 16)"]),
    (put(CELL.format(1, 1) + "W_0", numpy.zeros((32, 4))), ["(32, 192)", "found (32, 4)"]),
    (put(CELL.format(0, 1) + "B", 0.0), ["does not fit its options", "(192,)", "found ()"]),
    (put(CELL.format(1, 0) + "W_P_0", None), ["(48, 16) for", "/W_P_0, found none"]),
    (put(CELL.format(0, 2) + "B", 0.0), ["expected no tensor RNN_0/", "/Cell2/"]),
]
SAFETENSORS = [
    *[
        (put("CNN/b_cnn_1", numpy.ones(8, d)), [f"{FLOATS} {f}"])
        for d, f in [("int8", "I8"), ("bool", "BOOL")]
    ],
    (no_numbers, ["tensor char_embed of type", "found bfloat16"]),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "ending, spoil, expected",
    [
        *(("hdf5", *row) for row in BOTH + HDF5),
        *(("safetensors", *row) for row in BOTH + SAFETENSORS),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_and_changes_nothing(
    shared_bilm, tmp_path, ending, spoil, expected
):
    path = tmp_path / f"weights.{ending}"
    save_weights(shared_bilm, path)
    spoil(path)
    before = [parameter.clone() for parameter in shared_bilm.parameters()]
    with pytest.raises(ConfigurationError) as error:
        load_weights(shared_bilm, path)
    for part in [str(path), *expected]:
        assert part in str(error.value)
    assert all(torch.equal(*pair) for pair in zip(before, shared_bilm.parameters()))


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_a_file_read_and_written_again_is_the_same_bit_for_bit(
    shared_bilm, weight_file, tmp_path, ending
):
    save_weights(shared_bilm, tmp_path / f"weights.{ending}")
    arrays, expected = raw(tmp_path / f"weights.{ending}"), raw(weight_file)
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype == numpy.float32
        assert arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_half_precision_rounds_once_whatever_the_name_of_the_file(make_bilm, tmp_path, ending):
    bilm, read = make_bilm(seed=1), make_bilm(seed=2)
    save_weights(bilm, tmp_path / f"first.{ending}", "float16")
    load_weights(read, (tmp_path / f"first.{ending}").rename(tmp_path / "0a1b2c"))
    for name, parameter in bilm.named_parameters():
        assert torch.equal(read.get_parameter(name), parameter.half().float()), name
    assert [path.name for path in tmp_path.iterdir()] == ["0a1b2c"]


def test_names_and_shapes_are_those_of_the_published_files(make_bilm, tmp_path):
    save_weights(make_bilm(n_layers=2, n_highway=1), tmp_path / "weights.hdf5")
    shapes = {name: array.shape for name, array in raw(tmp_path / "weights.hdf5").items()}
    expected = {"char_embed": (261, 4), "CNN_proj/W_proj": (23, 6), "CNN_proj/b_proj": (6,)}
    for number, (width, filters) in enumerate([(1, 5), (2, 5), (3, 6), (5, 7)]):
        expected[f"CNN/W_cnn_{number}"] = (1, width, 4, filters)
        expected[f"CNN/b_cnn_{number}"] = (filters,)
    for part in ("carry", "transform"):
        expected[f"CNN_high_0/W_{part}"], expected[f"CNN_high_0/b_{part}"] = (23, 23), (23,)
    for cell in [CELL.format(direction, layer) for direction in (0, 1) for layer in (0, 1)]:
        expected.update({f"{cell}W_0": (12, 80), f"{cell}B": (80,), f"{cell}W_P_0": (20, 6)})
    assert shapes == expected


def test_the_softmax_that_training_writes_beside_is_left_alone(bilm, shared_bilm, tmp_path):
    save_weights(shared_bilm, tmp_path / "w.hdf5")
    put("softmax/W", numpy.zeros((9, 16)))(tmp_path / "w.hdf5")
    load_weights(bilm, tmp_path / "w.hdf5")


def test_real_numbers_of_any_size_and_byte_order_are_read(bilm, tmp_path):
    save_weights(bilm, tmp_path / "w.hdf5")
    put("CNN/b_cnn_1", numpy.arange(8).astype(">f8"))(tmp_path / "w.hdf5")
    load_weights(bilm, tmp_path / "w.hdf5")
    assert bilm.character_encoder.convolutions[1].bias.tolist() == list(range(8))


def test_a_trained_model_that_is_not_finite_is_refused(bilm, options_file, tmp_path):
    with torch.no_grad():
        bilm.lstm.forward_layers[1].bias[3] = numpy.nan
    archive = save_run(StandIn(bilm), vocabulary(tmp_path), tmp_path / "run")[1]
    with pytest.raises(ConfigurationError, match="run.tar.gz: .* lstm.forward_layers.1.bias of"):
        load_bilm(options_file, archive)


def test_a_folder_is_named_as_one(bilm, tmp_path):
    bilm.save_pretrained(tmp_path / "exported")
    with pytest.raises(
        ConfigurationError,
        match="exported is a folder without weights.th or best.th. Name a file in it.",
    ):
        load_bilm(tmp_path / "exported" / "config.json", tmp_path / "exported")


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (numpy.nan, "float32", "RNN_1/.* within float32, found nan in 1 of .*another checkpoint"),
        (-1e5, "float16", "RNN_1/.*Cell1.* within float16, found -100000"),
        (0.0, "int8", "float32 or float16, found 'int8'"),
    ],
)
def test_what_a_file_does_not_hold_is_not_written(bilm, tmp_path, value, dtype, expected):
    with torch.no_grad():
        bilm.lstm.backward_layers[1].bias[3] = value
    with pytest.raises(ValueError, match=expected):
        save_weights(bilm, tmp_path / "w.hdf5", dtype)
    assert not list(tmp_path.iterdir())


@pytest.mark.timeout(20)
def test_options_that_the_file_has_not_are_named_before_a_model_needs_memory(
    make_options, make_bilm, tmp_path
):
    save_weights(make_bilm(), tmp_path / "two.hdf5")
    huge = make_options(dim=10**6, projection_dim=10**6)
    (tmp_path / "options.json").write_text(json.dumps(huge))
    with pytest.raises(ConfigurationError, match=r"CNN_proj/W_proj, found \(23, 6\)"):
        load_bilm(tmp_path / "options.json", tmp_path / "two.hdf5")
