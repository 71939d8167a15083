"""A biLM whose weights are whole numbers of one byte."""

import copy
import json

import pytest
import torch
from allennlp.commands.train import train_model
from allennlp.common.checks import ConfigurationError
from allennlp.models import load_archive

from elmo_plugin.bilm import Bilm, BilmOptions, load_bilm, load_weights, save_weights
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.elmo import Elmo
from elmo_plugin.modules.linear.int8 import Int8Linear
from tests.elmo.test_archive import TAGGED, config

SHAPE = dict(filters=[[1, 32], [2, 64], [3, 128]], dim=256, projection_dim=64, embedding=16)
SENTENCES = [["They", "play", "naïve", "🙂", "chess"], ["No"], ["A", "much", "longer", "one"] * 9]


@pytest.fixture
def exact(make_options):
    """A biLM with initial weights, whose scale is that of training."""
    torch.manual_seed(5)
    return Bilm(BilmOptions.from_dict(make_options(**SHAPE))).eval().requires_grad_(False)


@pytest.fixture
def bilm(exact):
    """The same, rounded."""
    return copy.deepcopy(exact).to_int8()


@pytest.fixture
def files(tmp_path, exact, make_options):
    """Its files."""
    (tmp_path / "options.json").write_text(json.dumps(make_options(**SHAPE)))
    save_weights(exact, tmp_path / "weights.hdf5")
    return tmp_path / "options.json", tmp_path / "weights.hdf5"


def layers(bilm, sentences=SENTENCES):
    return bilm(bilm.characters.batch_ids(sentences)).layers


def int8_layers(bilm):
    return {name for name, layer in bilm.named_modules() if isinstance(layer, Int8Linear)}


def test_every_layer_stays_within_two_percent(exact, bilm):
    for found, expected in zip(layers(bilm), layers(exact)):
        assert 0 < (found - expected).norm() < 0.02 * expected.norm()


def test_it_is_the_bilm_of_the_rounded_weights(exact, bilm):
    for name in int8_layers(bilm):
        exact.get_submodule(name).weight.copy_(bilm.get_submodule(name).dequantize())
    for found, expected in zip(layers(bilm), layers(exact)):
        assert (found - expected).norm() < 5e-4 * expected.norm()


def test_all_products_are_rounded_but_the_convolutions(bilm):
    found = int8_layers(bilm)
    assert len(found) == 3 + 4 * 3
    assert not any("convolutions" in name for name in found)
    assert {"character_encoder.projection", "lstm.backward_layers.1.recurrent"} <= found


def test_another_type_is_refused(files):
    expected = "one of float32, bfloat16, int8, found 'int4'"
    with pytest.raises(ConfigurationError, match=expected):
        load_bilm(*files, dtype="int4")


def test_it_is_loaded_from_a_state_of_either_kind(exact, bilm):
    for state in (exact.state_dict(), bilm.state_dict()):
        other = Bilm(exact.options).eval().to_int8()
        other.load_state_dict(state)
        assert torch.equal(layers(other), layers(bilm))


def test_nothing_learns_unless_it_is_asked_to_and_then_it_says_why(bilm):
    assert not layers(bilm).requires_grad
    with pytest.raises(RuntimeError, match="can be trained, found int8"):
        layers(bilm.requires_grad_())
    with pytest.raises(ConfigurationError, match="needs `dtype` float32"):
        Elmo(trainable=True, dtype="int8")


def test_weight_files_hold_no_int8_but_are_rounded_when_read(bilm, files, tmp_path):
    with pytest.raises(ValueError, match="expected a biLM of float32 or bfloat16, found int8"):
        save_weights(bilm, tmp_path / "w.hdf5")
    other = Bilm(bilm.options).eval().to_int8()
    load_weights(other, files[1])
    for read in (other, load_bilm(*files, dtype="int8")):
        assert torch.equal(layers(read), layers(bilm))


def test_an_archive_holds_whole_numbers_that_are_widened_for_others(tmp_path):
    (tmp_path / "tagged.txt").write_text(TAGGED)
    train_model(config(None, tmp_path, dtype="int8"), str(tmp_path / "run"))
    archive = tmp_path / "run" / "model.tar.gz"
    inside = load_archive(archive).model.text_field_embedder.token_embedder_elmo.bilm
    bilm = load_bilm(dtype="int8")
    assert torch.equal(layers(inside), layers(bilm))
    widened = TrainedModel.read(archive).bilm()
    assert not int8_layers(widened)
    for name in int8_layers(bilm):
        expected = bilm.get_submodule(name).dequantize()
        assert torch.equal(widened.get_parameter(f"{name}.weight"), expected)
