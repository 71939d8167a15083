"""Files of weights: read, written, refused."""

import json
import shutil

import h5py
import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.modules.elmo import _ElmoBiLm
from safetensors.numpy import load_file
from safetensors.numpy import save_file as numpy_save_file
from safetensors.torch import save_file

from elmo_plugin.bilm import load_bilm, load_weights, save_weights
from tests.bilm.oracle import assert_layers_equal, read_arrays
from tests.bilm.trained import StandIn, save_run, vocabulary

CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/"


@pytest.fixture
def copied(weight_file, tmp_path):
    """The fixture's weights in a file that a test may spoil."""
    return shutil.copy(weight_file, tmp_path / "copied.hdf5")


def refused(bilm, weight_file, expected):
    with pytest.raises(ConfigurationError) as error:
        load_weights(bilm, weight_file)
    assert str(weight_file) in str(error.value)
    for part in [expected] if isinstance(expected, str) else expected:
        assert part in str(error.value)


def spoiled(bilm, path, name, array):
    """A file of weights with another array in place of one."""
    save_weights(bilm, path)
    if path.suffix == ".safetensors":
        numpy_save_file({**load_file(path), name: array}, path)
    else:
        with h5py.File(path, "a") as opened:
            del opened[name]
            opened[name] = array
    return path


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_a_file_read_and_written_again_is_the_same_bit_for_bit(
    shared_bilm, weight_file, tmp_path, ending
):
    written = tmp_path / f"weights.{ending}"
    save_weights(shared_bilm, written)
    arrays = load_file(written) if ending == "safetensors" else _raw(written)
    expected = _raw(weight_file)
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype == numpy.float32
        assert arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_bilm_written_and_read_again_is_the_same_bit_for_bit(make_bilm, tmp_path, ending, dtype):
    bilm, read, again = make_bilm(seed=1), make_bilm(seed=2), make_bilm(seed=3)
    first, second = tmp_path / f"first.{ending}", tmp_path / f"second.{ending}"
    save_weights(bilm, first, dtype)
    load_weights(read, first)
    for name, parameter in bilm.named_parameters():
        expected = parameter.half().float() if dtype == "float16" else parameter
        assert torch.equal(read.get_parameter(name), expected), name
    save_weights(read, second, dtype)
    load_weights(again, second)
    for name, parameter in read.named_parameters():
        assert torch.equal(again.get_parameter(name), parameter), name
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, second.name]


def test_half_precision_halves_the_file(make_bilm, tmp_path):
    for dtype in ("float32", "float16"):
        save_weights(make_bilm(dim=200), tmp_path / dtype, dtype)
    sizes = [(tmp_path / dtype).stat().st_size for dtype in ("float32", "float16")]
    assert 1.7 < sizes[0] / sizes[1] < 2.1


def test_names_and_shapes_are_those_of_the_published_files(make_bilm, tmp_path):
    save_weights(make_bilm(n_layers=2, n_highway=1), tmp_path / "weights.hdf5")
    shapes = {name: array.shape for name, array in _raw(tmp_path / "weights.hdf5").items()}
    expected = {"char_embed": (261, 4), "CNN_proj/W_proj": (23, 6), "CNN_proj/b_proj": (6,)}
    for number, (width, filters) in enumerate([(1, 5), (2, 5), (3, 6), (5, 7)]):
        expected[f"CNN/W_cnn_{number}"] = (1, width, 4, filters)
        expected[f"CNN/b_cnn_{number}"] = (filters,)
    for part in ("carry", "transform"):
        expected[f"CNN_high_0/W_{part}"], expected[f"CNN_high_0/b_{part}"] = (23, 23), (23,)
    for direction in (0, 1):
        for layer in (0, 1):
            cell = CELL.format(direction, layer)
            expected.update({f"{cell}W_0": (12, 80), f"{cell}B": (80,), f"{cell}W_P_0": (20, 6)})
    assert shapes == expected


# AllenNLP adds the hidden 1 to the forget bias in the file's own precision.
@pytest.mark.parametrize("dtype, most", [("float32", 1e-5), ("float16", 1e-3)])
def test_allennlp_reads_what_we_write(make_bilm, make_options, tmp_path, dtype, most):
    bilm = make_bilm(seed=5, n_layers=3)
    save_weights(bilm, tmp_path / "weights.hdf5", dtype)
    load_weights(bilm, tmp_path / "weights.hdf5")
    (tmp_path / "options.json").write_text(json.dumps(make_options(n_layers=3)))
    theirs = _ElmoBiLm(str(tmp_path / "options.json"), str(tmp_path / "weights.hdf5"))
    ids = bilm.characters.batch_ids([["What", "we", "write"], ["Yes"]])
    assert_layers_equal(bilm(ids).layers, torch.stack(theirs(ids)["activations"]), most)


def test_safetensors_are_loaded_with_options(
    options_file, shared_bilm, tmp_path, golden, sentences
):
    save_weights(shared_bilm, tmp_path / "weights.safetensors")
    bilm = load_bilm(options_file, tmp_path / "weights.safetensors")
    ids = bilm.characters.batch_ids(sentences[:1])
    assert_layers_equal(bilm(ids).layers[:, 0], golden[0])


def test_the_softmax_that_training_writes_beside_is_left_alone(bilm, copied):
    with h5py.File(copied, "a") as opened:
        opened["softmax/W"] = numpy.zeros((9, 16))
    load_weights(bilm, copied)


@pytest.mark.parametrize("kind", ["external", "virtual"])
def test_a_dataset_that_reads_other_files_is_refused(bilm, copied, tmp_path, kind):
    secret = tmp_path / "secret"
    with h5py.File(copied, "a") as opened:
        name, shape = "CNN_proj/b_proj", opened["CNN_proj/b_proj"].shape
        del opened[name]
        if kind == "external":
            secret.write_bytes(bytes(4 * shape[0]))
            opened.create_dataset(name, shape, "f4", external=[(str(secret), 0, 4 * shape[0])])
        else:
            with h5py.File(secret, "w") as other:
                other["x"] = numpy.zeros(shape, "f4")
            layout = h5py.VirtualLayout(shape, "f4")
            layout[:] = h5py.VirtualSource(secret, "x", shape)
            opened.create_virtual_dataset(name, layout)
    with pytest.raises(ConfigurationError, match=f"{name} is an external or virtual dataset"):
        load_weights(bilm, copied)


def test_an_interrupted_write_leaves_the_file_that_was_there(bilm, copied, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    before = copied.read_bytes()
    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    with pytest.raises(KeyboardInterrupt):
        save_weights(bilm, copied)
    assert copied.read_bytes() == before


def test_a_missing_file_is_named_with_the_setting(bilm, tmp_path):
    refused(bilm, tmp_path / "none.hdf5", ["does not exist", "`weight_file` (or ELMO_WEIGHTS)"])


@pytest.mark.timeout(20)
def test_groups_in_groups_are_refused_at_once(bilm, copied):
    with h5py.File(copied, "r+") as file:
        file["/".join("g" * 5000)] = 1.0
    refused(bilm, copied, "expected weights, found nested groups")


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_half_a_file_is_damaged(bilm, tmp_path, ending):
    path = tmp_path / f"half.{ending}"
    save_weights(bilm, path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused(bilm, path, ["cannot be read", "damaged, cut short"])


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
@pytest.mark.parametrize("content", [b"", b"<html>404</html>\n" * 99])
def test_another_kind_of_file_is_refused(bilm, tmp_path, ending, content):
    path = tmp_path / f"page.{ending}"
    path.write_bytes(content)
    refused(bilm, path, "neither HDF5 nor safetensors")


@pytest.mark.parametrize(
    "name, shape, expected",
    [
        ("char_embed", (261, 9), ["(261, 8)", "char_embed, found (261, 9)"]),
        ("char_embed", (262, 8), ["found (262, 8)", "261 rows", "`n_characters` 262"]),
        ("CNN_proj/W_proj", (16, 48), ["(48, 16)", "CNN_proj/W_proj, found (16, 48)"]),
        ("CNN/W_cnn_2", (3, 8, 16), ["(1, 3, 8, 16)", "CNN/W_cnn_2, found (3, 8, 16)"]),
        (CELL.format(1, 1) + "W_0", (32, 4), ["(32, 192)", CELL.format(1, 1), "found (32, 4)"]),
        (CELL.format(0, 1) + "B", (), ["(192,)", CELL.format(0, 1), "found ()"]),
    ],
)
def test_a_tensor_of_another_shape_is_named_with_both_shapes(bilm, copied, name, shape, expected):
    with h5py.File(copied, "a") as opened:
        del opened[name]
        opened[name] = numpy.zeros(shape, "float32")
    refused(bilm, copied, ["does not fit its options", *expected])


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
@pytest.mark.parametrize("dtype", ["int8", "bool", "uint16"])
def test_weights_that_are_no_real_numbers_are_refused(shared_bilm, bilm, tmp_path, ending, dtype):
    path = spoiled(shared_bilm, tmp_path / f"w.{ending}", "CNN/b_cnn_1", numpy.ones(8, dtype))
    expected = {"int8": "I8", "bool": "BOOL", "uint16": "U16"}[dtype] if ending[0] == "s" else dtype
    refused(
        bilm,
        path,
        f"expected tensor CNN/b_cnn_1 of type float16, float32, float64, found {expected}. Write",
    )


@pytest.mark.parametrize("array", [numpy.ones(8, "complex64"), [b"a"] * 8, [(1, 2.0)] * 8])
def test_weights_of_other_types_of_hdf5_are_refused(shared_bilm, bilm, tmp_path, array):
    if isinstance(array, list):
        array = numpy.array(array, "i4,f4" if isinstance(array[0], tuple) else None)
    path = spoiled(shared_bilm, tmp_path / "w.hdf5", "CNN/b_cnn_1", array)
    refused(
        bilm,
        path,
        f"tensor CNN/b_cnn_1 of type float16, float32, float64, found {array.dtype.name}",
    )


def test_bfloat16_in_safetensors_is_refused_by_its_name(shared_bilm, bilm, tmp_path):
    save_weights(shared_bilm, tmp_path / "w.safetensors")
    tensors = {k: torch.from_numpy(v) for k, v in load_file(tmp_path / "w.safetensors").items()}
    tensors["char_embed"] = tensors["char_embed"].bfloat16()
    save_file(tensors, tmp_path / "w.safetensors")
    refused(bilm, tmp_path / "w.safetensors", ["tensor char_embed of type", "found bfloat16"])


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
@pytest.mark.parametrize("value", [numpy.nan, numpy.inf, -numpy.inf, 1e300])
def test_weights_that_are_not_finite_are_refused(shared_bilm, bilm, tmp_path, ending, value):
    array = numpy.ones(8)
    array[[2, 5]] = value
    path = spoiled(shared_bilm, tmp_path / f"w.{ending}", "CNN/b_cnn_1", array)
    refused(
        bilm, path, f"CNN/b_cnn_1 of finite numbers within float32, found {value} in 2 of 8 entries"
    )


def test_a_trained_model_that_is_not_finite_is_refused(bilm, options_file, tmp_path):
    with torch.no_grad():
        bilm.lstm.forward_layers[1].bias[3] = numpy.nan
    archive = save_run(StandIn(bilm), vocabulary(tmp_path), tmp_path / "run")[1]
    with pytest.raises(
        ConfigurationError, match="run.tar.gz: .* lstm.forward_layers.1.bias of the"
    ):
        load_bilm(options_file, archive)


@pytest.mark.parametrize("dtype", [">f4", "<f8", "<f2"])
def test_real_numbers_of_any_size_and_byte_order_are_read(shared_bilm, bilm, tmp_path, dtype):
    array = numpy.arange(8).astype(dtype)
    load_weights(bilm, spoiled(shared_bilm, tmp_path / "w.hdf5", "CNN/b_cnn_1", array))
    assert bilm.character_encoder.convolutions[1].bias.tolist() == list(range(8))


def test_an_array_that_is_nothing_has_another_shape(shared_bilm, bilm, tmp_path):
    path = spoiled(shared_bilm, tmp_path / "w.hdf5", "char_embed", h5py.Empty("f4"))
    refused(bilm, path, "expected shape (261, 8) for tensor char_embed, found ()")


def test_a_folder_is_named_as_one(bilm, tmp_path):
    expected = "is a folder without weights.th or best.th. Set `weight_file` (or ELMO_WEIGHTS)"
    refused(bilm, tmp_path, expected)
    bilm.save_pretrained(tmp_path / "exported")
    with pytest.raises(ConfigurationError, match="exported is a folder without weights.th"):
        load_bilm(tmp_path / "exported" / "config.json", tmp_path / "exported")


@pytest.mark.parametrize("ending", ["hdf5", "safetensors"])
def test_the_format_is_that_of_the_content_and_not_of_the_name(shared_bilm, bilm, tmp_path, ending):
    save_weights(shared_bilm, tmp_path / f"w.{ending}")
    load_weights(bilm, (tmp_path / f"w.{ending}").rename(tmp_path / "0a1b2c"))
    assert all(torch.equal(*pair) for pair in zip(bilm.parameters(), shared_bilm.parameters()))


@pytest.mark.parametrize("value", [numpy.nan, -numpy.inf])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_weights_that_are_not_finite_are_not_written(bilm, tmp_path, value, dtype):
    with torch.no_grad():
        bilm.lstm.forward_layers[1].bias[3] = value
    with pytest.raises(ValueError, match="finite numbers in RNN_0.*use another checkpoint"):
        save_weights(bilm, tmp_path / "w.hdf5", dtype)
    assert not (tmp_path / "w.hdf5").exists()


def test_options_that_the_file_has_not_are_named_before_a_model_is_built(
    make_options, make_bilm, tmp_path, monkeypatch
):
    save_weights(make_bilm(n_layers=2), tmp_path / "two.hdf5")
    # Within all bounds, and more than there is memory for.
    (tmp_path / "options.json").write_text(json.dumps(make_options(dim=10**6, projection_dim=90)))
    monkeypatch.setattr(torch.nn.Module, "__init__", lambda *_: pytest.fail("a model was built"))
    with pytest.raises(ConfigurationError, match=r"CNN_proj/W_proj, found \(23, 6\)"):
        load_bilm(tmp_path / "options.json", tmp_path / "two.hdf5")


def test_a_missing_tensor_is_named(bilm, copied):
    with h5py.File(copied, "a") as opened:
        del opened[CELL.format(1, 0) + "W_P_0"]
    expected = f"tensor {CELL.format(1, 0)}W_P_0 of shape (48, 16) is missing"
    refused(bilm, copied, ["does not fit its options", expected])


@pytest.mark.parametrize(
    "ours, theirs, expected",
    [
        (
            dict(bidirectional=True),
            dict(bidirectional=False),
            "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_0 of shape (12, 80) is missing. In the "
            "options, `bidirectional` is true.",
        ),
        (
            dict(bidirectional=False),
            dict(bidirectional=True),
            "which a biLM of these options does not have. In the options, `bidirectional` is "
            "false.",
        ),
        (
            dict(projection=True, projection_dim=22),
            dict(projection=False, projection_dim=22),
            "tensor CNN_proj/W_proj of shape (23, 22) is missing. In the options, "
            "`char_cnn.projection` is true; false is for filters that are used as the token layer",
        ),
        (
            dict(projection=False, projection_dim=23),
            dict(projection=True, projection_dim=23),
            "these options does not have. In the options, `char_cnn.projection` is false",
        ),
        (
            # What bilm-tf does not project it does not clip.
            dict(projection_dim=20, proj_clip=0.5),
            dict(projection_dim=None),
            "W_P_0 of shape (20, 20) is missing. In the options, `lstm.projection_dim` is 20; null "
            "is for no projection. bilm-tf projects only to fewer than `lstm.dim`.",
        ),
        (
            dict(projection_dim=None),
            dict(projection_dim=20),
            "these options does not have. In the options, `lstm.projection_dim` is null",
        ),
    ],
)
def test_the_setting_behind_a_tensor_too_many_or_too_few_is_named(
    make_bilm, tmp_path, ours, theirs, expected
):
    save_weights(make_bilm(**theirs), tmp_path / "theirs.hdf5")
    refused(make_bilm(**ours), tmp_path / "theirs.hdf5", expected)


def test_a_layer_that_the_options_do_not_have_is_named(make_bilm, tmp_path):
    save_weights(make_bilm(n_layers=3), tmp_path / "three.hdf5")
    refused(make_bilm(n_layers=2), tmp_path / "three.hdf5", ["also holds tensor RNN_0/", "/Cell2/"])


def test_a_refused_file_leaves_the_weights_as_they_were(bilm, copied, shared_bilm):
    with h5py.File(copied, "a") as opened:
        opened["char_embed"][...] = 0
        del opened[CELL.format(1, 1) + "B"]
    refused(bilm, copied, "is missing")
    for name, parameter in shared_bilm.named_parameters():
        assert torch.equal(bilm.get_parameter(name), parameter)


def _raw(path):
    """As stored; `read_arrays` gives float64."""
    with h5py.File(path, "r") as opened:
        return {name: opened[name][...] for name in read_arrays(path)}


def test_a_weight_beyond_float16_is_refused_instead_of_becoming_infinite(bilm, tmp_path):
    with torch.no_grad():
        bilm.lstm.backward_layers[1].bias[3] = -1e5
    with pytest.raises(ValueError, match="up to 65504 for float16, found 100000 in RNN_1/.*Cell1"):
        save_weights(bilm, tmp_path / "weights.hdf5", "float16")
    assert not list(tmp_path.iterdir())


def test_a_type_that_files_do_not_have_is_refused(bilm, tmp_path):
    with pytest.raises(ValueError, match="float32 or float16, found 'int8'"):
        save_weights(bilm, tmp_path / "weights.hdf5", "int8")
