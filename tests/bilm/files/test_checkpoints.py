"""Checkpoints that bilm-tf writes in training: found, read, refused."""

import json
import re
import shutil
import sys

import numpy
import pytest
import torch

from elmo_plugin.bilm import save_weights
from elmo_plugin.bilm.files.arrays import read_arrays
from elmo_plugin.bilm.files.checkpoints import find_checkpoint, read_checkpoint
from elmo_plugin.bilm.pretraining.language_model import options_for
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.files.checkpoint_files import (
    RECORDED,
    Reader,
    recorded,
    without_tensorflow,
    write_folder,
)
from tests.bilm.oracle import SlowBilm, assert_layers_equal
from tests.bilm.oracle import read_arrays as slow_arrays
from tests.bilm.trained import WORDS

SENTENCE = ["the", "naïve", "play", "began", "日本語"]
# What TensorFlow called a cell and its parts, from bilm-tf's version on back.
VERSIONS = {
    "1.2": ("rnn", "multi_rnn_cell/cell_{}/", "lstm_cell/", "kernel bias projection/kernel"),
    "1.0": ("rnn", "multi_rnn_cell/cell_{}/", "lstm_cell/", "weights biases projection/weights"),
    "0.12": ("RNN", "MultiRNNCell/Cell{}/", "LSTMCell/", "W_0 B W_P_0"),
}


@pytest.fixture(params=["recorded", "tensorflow"])
def reader(request, monkeypatch):
    """Reads checkpoints that are copies of the fixture."""
    if request.param == "tensorflow":
        pytest.importorskip("tensorflow")
    else:

        class Recorded(dict):
            def __missing__(self, path):
                return recorded()

        without_tensorflow(monkeypatch, Recorded())


def as_training(bilm, path, version="1.2"):
    """The variables of the training of a biLM, of which `path` receives the weights."""
    save_weights(bilm, path)
    rnn, numbered, cell, parts = VERSIONS[version]
    parts = dict(zip(("W_0", "B", "W_P_0"), parts.split()))
    variables = {}
    for name, array in read_arrays(path, lambda shapes: shapes).items():
        if name.startswith("RNN_"):
            direction, _, _, number, _, part = name.split("/")
            scope = f"{direction}/" if bilm.options.bidirectional else ""
            of_layer = numbered.format(number[-1]) if bilm.options.lstm.n_layers > 1 else ""
            name = f"{scope}{rnn}/{of_layer}{cell}{parts[part]}"
        variables[f"lm/{name}"] = array
        variables[f"lm/{name}/Adagrad"] = numpy.ones_like(array)
    generator = numpy.random.default_rng(1)
    shape = len(WORDS), bilm.options.lstm.output_dim
    variables["lm/softmax/W"] = generator.standard_normal(shape).astype("float32")
    variables["lm/softmax/b"] = generator.standard_normal(shape[:1]).astype("float32")
    return {**variables, "global_step": numpy.array(7, "int64")}


@pytest.fixture
def training(make_options, monkeypatch, tmp_path):
    """A training with these variables: its checkpoint and a vocabulary."""
    (tmp_path / "words").write_text("\n".join(WORDS) + "\n", encoding="utf-8")

    def make(variables, change=lambda options: None, **changes):
        options = make_options(n_characters=261, **changes)
        options["n_tokens_vocab"] = len(WORDS)
        change(options)
        folder = write_folder(tmp_path / "save", options, 7)
        without_tensorflow(monkeypatch, {str(folder / "model.ckpt-7"): variables})
        return folder / "model.ckpt-7.index", tmp_path / "words"

    return make


def test_the_layers_are_those_of_a_slow_loop_over_the_variables(reader):
    bilm, softmax = read_checkpoint(RECORDED / "model.ckpt-7.index", RECORDED / "vocabulary.txt")
    variables = recorded()
    arrays = {}
    for name, array in variables.items():
        published = name.removeprefix("lm/").replace("rnn/multi_rnn_cell/cell_", "RNN/Cell")
        for theirs, ours in (("projection/kernel", "W_P_0"), ("kernel", "W_0"), ("bias", "B")):
            published = published.replace(f"lstm_cell/{theirs}", f"LSTMCell/{ours}")
        arrays[published.replace("RNN/Cell", "RNN/MultiRNNCell/Cell")] = array.astype("float64")
    options = json.loads((RECORDED / "options.json").read_text())
    slow = SlowBilm(options, arrays)
    output = bilm(bilm.characters.batch_ids([SENTENCE]))
    assert_layers_equal(output.layers[:, 0], slow.layers(SENTENCE))
    assert numpy.array_equal(softmax.weight.numpy(), variables["lm/softmax/W"])
    assert numpy.array_equal(softmax.bias.numpy(), variables["lm/softmax/b"])
    assert softmax.words[-1] == "naïve" and softmax.counts is None
    # The options of the files to write; the rest is kept.
    assert bilm.options.source["char_cnn"]["n_characters"] == 262
    assert bilm.options.source["n_negative_samples_batch"] == 4


def test_the_recorded_variables_are_those_that_tensorflow_reads():
    tensorflow = pytest.importorskip("tensorflow")
    theirs = tensorflow.train.load_checkpoint(str(RECORDED / "model.ckpt-7"))
    ours = Reader(recorded())
    assert theirs.get_variable_to_shape_map() == ours.get_variable_to_shape_map()
    types, expected = theirs.get_variable_to_dtype_map(), ours.get_variable_to_dtype_map()
    assert {name: each.name for name, each in types.items()} == expected
    for name in expected:
        assert numpy.array_equal(theirs.get_tensor(name), ours.get_tensor(name))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "changes", [{}, dict(n_layers=1), dict(bidirectional=False), dict(projection_dim=20)]
)
def test_weights_are_found_by_the_names_of_each_version(
    make_bilm, training, tmp_path, version, changes
):
    bilm = make_bilm(seed=1, **changes)
    variables = as_training(bilm, tmp_path / "weights.hdf5", version)
    if "projection_dim" in changes:
        # bilm-tf has no projection to the width that there is already.
        projection = re.compile("W_P_0|/projection/")
        variables = {n: each for n, each in variables.items() if not projection.search(n)}
    read, softmax = read_checkpoint(*training(variables, **changes))
    arrays = slow_arrays(tmp_path / "weights.hdf5")
    if "projection_dim" in changes:
        arrays = {name: array for name, array in arrays.items() if "W_P_0" not in name}
    slow = SlowBilm(bilm.options.source, arrays)
    layers = read(read.characters.batch_ids([SENTENCE])).layers[:, 0]
    assert_layers_equal(layers, slow.layers(SENTENCE))
    assert softmax.weight.shape == (len(WORDS), read.options.lstm.output_dim)


def without_characters(options):
    del options["char_cnn"]
    options["share_embedding_softmax"] = True


@pytest.mark.parametrize("is_shared", [False, True])
def test_embeddings_of_words_are_read_and_may_be_the_softmax(
    make_bilm, training, tmp_path, is_shared
):
    variables = as_training(make_bilm(seed=1), tmp_path / "weights.hdf5")
    variables = {name: each for name, each in variables.items() if re.match("lm/[Rs]", name)}
    table = numpy.arange(len(WORDS) * 6, dtype="float32").reshape(-1, 6)
    variables["lm/embedding"] = table
    if is_shared:
        del variables["lm/softmax/W"]
    checkpoint, vocabulary_file = training(variables, without_characters)
    bilm, softmax = read_checkpoint(checkpoint, vocabulary_file)
    # Row 0 is for padding.
    assert numpy.array_equal(bilm.character_encoder.embedding.weight[1:].detach(), table)
    assert numpy.array_equal(softmax.weight, table) == is_shared
    assert bilm.options.words == tuple(WORDS)
    # Training refuses options that share the matrix.
    assert options_for(bilm.options, WORDS) == bilm.options
    with pytest.raises(ConfigurationError, match="has embeddings of words: .* --vocabulary"):
        read_checkpoint(checkpoint)


def test_without_a_vocabulary_there_is_no_softmax(make_bilm, training, tmp_path):
    bilm = make_bilm(seed=1)
    checkpoint, _ = training(as_training(bilm, tmp_path / "weights.hdf5"))
    read, softmax = read_checkpoint(checkpoint)
    assert softmax is None
    assert all(map(torch.equal, read.parameters(), bilm.parameters()))


def test_defaults_are_those_of_the_training(make_bilm, training, tmp_path):
    """A model is forward-only and without skip connections unless the options say otherwise."""

    def drop(options):
        options["lstm"]["use_skip_connections"] = None
        del options["bidirectional"], options["lstm"]["cell_clip"], options["lstm"]["proj_clip"]
        del options["char_cnn"]["n_highway"]

    nothing = dict(bidirectional=False, n_highway=0, use_skip_connections=False)
    bilm = make_bilm(**nothing, cell_clip=None, proj_clip=None)
    read, _ = read_checkpoint(*training(as_training(bilm, tmp_path / "weights.hdf5"), drop))
    assert read.options == bilm.options


def test_the_last_checkpoint_is_found_or_another_one(tmp_path):
    folder = write_folder(tmp_path, {}, 9, 10, 100)
    others = 'all_model_checkpoint_paths: "model.ckpt-9"\n'
    for last in ("/gone/save/model.ckpt-10", "model.ckpt-10"):
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "{last}"\n{others}')
        assert find_checkpoint(folder) == folder / "model.ckpt-10.index"
    another = folder / "model.ckpt-9.index"
    assert find_checkpoint(another) == another


@pytest.mark.parametrize(
    "last, message",
    [
        ("model.ckpt-11", "model.ckpt-11.index, found model.ckpt-10.index, .*Name"),
        ("../secret/model.ckpt-8", "model.ckpt-8.index, found model.ckpt-10.index"),
        (None, "model.ckpt-N.index, found model.ckpt-10.index"),
    ],
)
def test_a_checkpoint_that_is_not_there_is_named(tmp_path, last, message):
    folder = write_folder(tmp_path, {}, 9, 10)
    if last is not None:
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "{last}"\n')
    expected = f"^{tmp_path}: expected the file `checkpoint`, .* and {message}"
    with pytest.raises(ConfigurationError, match=expected):
        find_checkpoint(folder)
    with pytest.raises(ConfigurationError, match="model.ckpt-N.index, found none. Name the"):
        find_checkpoint(tmp_path / "missing")


def test_without_tensorflow_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    with pytest.raises(ConfigurationError) as error:
        read_checkpoint(RECORDED / "model.ckpt-7.index")
    expected = "model.ckpt-7.index needs the package tensorflow: pip install tensorflow."
    assert str(error.value) == f"Reading the checkpoint {RECORDED}/{expected}"


def changed(name, array):
    return lambda variables: variables.update({name: array})


@pytest.mark.parametrize(
    "spoil, message",
    [
        (
            changed("lm/char_embed", numpy.zeros((262, 4), "float32")),
            r"does not fit its options: expected shape \(261, 4\) for tensor char_embed, found",
        ),
        (
            lambda variables: variables.pop("lm/RNN_1/rnn/multi_rnn_cell/cell_1/lstm_cell/kernel"),
            "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/W_0, found none",
        ),
        (changed("lm/attention", numpy.zeros(3, "float32")), "no tensor attention, found"),
        (changed("lm/char_embed", numpy.zeros((261, 4), "int64")), "char_embed of type .* int64"),
        (
            changed("lm/CNN/b_cnn_0", numpy.full(5, numpy.nan, "float32")),
            "CNN/b_cnn_0 of finite numbers",
        ),
        (
            changed("lm/softmax/W", numpy.zeros((9, 6), "float32")),
            r"expected a weight of shape \(7, 6\), the number of words",
        ),
        (lambda variables: variables.pop("lm/softmax/b"), "softmax/W and softmax/b, found softmax"),
        (lambda variables: variables.clear(), "char_embed, found none"),
    ],
)
def test_variables_that_do_not_fit_are_refused(make_bilm, training, tmp_path, spoil, message):
    variables = as_training(make_bilm(), tmp_path / "weights.hdf5")
    spoil(variables)
    with pytest.raises(ConfigurationError, match=f"model.ckpt-7.index.*{message}"):
        read_checkpoint(*training(variables))


def test_options_that_are_wrong_are_refused(training):
    def spoil(options):
        options["char_cnn"]["n_characters"] = 300

    checkpoint, _ = training({}, spoil)
    with pytest.raises(ConfigurationError, match="options.json: expected 262 .*n_characters"):
        read_checkpoint(checkpoint)
    checkpoint.with_name("options.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="options.json: `lstm.dim` is missing"):
        read_checkpoint(checkpoint)
    checkpoint.with_name("options.json").unlink()
    with pytest.raises(ConfigurationError, match="options.json does not exist"):
        read_checkpoint(checkpoint)


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip(path):
    content = bytearray(path.read_bytes())
    content[20] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("suffix", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("damage", [cut, flip, lambda path: path.write_bytes(b"")])
def test_a_damaged_checkpoint_is_refused(tmp_path, suffix, damage):
    pytest.importorskip("tensorflow")
    folder = shutil.copytree(RECORDED, tmp_path / "save")
    damage(folder / f"model.ckpt-7.{suffix}")
    with pytest.raises(ConfigurationError, match="7.index cannot be read; it is damaged") as error:
        read_checkpoint(folder / "model.ckpt-7.index", folder / "vocabulary.txt")
    assert "\n" not in str(error.value)


def test_a_checkpoint_without_its_data_is_refused(tmp_path):
    pytest.importorskip("tensorflow")
    folder = shutil.copytree(RECORDED, tmp_path / "save")
    (folder / "model.ckpt-7.data-00000-of-00001").unlink()
    with pytest.raises(ConfigurationError, match="lacks its .data files"):
        read_checkpoint(folder / "model.ckpt-7.index")
