"""Trained models as sources of weights: found, refused, and never executed."""

import json
import pickle
import tarfile

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_plugin.bilm import load_bilm, save_weights
from elmo_plugin.bilm.files.load import load_weights
from elmo_plugin.bilm.files.softmax import find_softmax
from elmo_plugin.bilm.files.trained import TrainedModel
from tests.bilm.trained import COUNTS, WORDS, StandIn, save_run, vocabulary


def same(bilm, other):
    pairs = zip(bilm.named_parameters(), other.named_parameters())
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


@pytest.fixture
def model(make_bilm):
    return StandIn(make_bilm(seed=1), len(WORDS))


@pytest.fixture
def run(model, tmp_path):
    return dict(zip(("folder", "archive"), save_run(model, vocabulary(tmp_path), tmp_path / "run")))


def tarred(run, tmp_path):
    """As `tar czf model.tar.gz .` names the members."""
    with tarfile.open(run["archive"]) as source, tarfile.open(tmp_path / "t", "w:gz") as target:
        for member in source:
            content = source.extractfile(member) if member.isfile() else None
            member.name = f"./{member.name}"
            target.addfile(member, content)
    return tmp_path / "t"


@pytest.mark.parametrize("kind", ["folder", "archive", "tar czf"])
def test_weights_and_softmax_come_from_a_trained_model(model, run, make_bilm, kind, tmp_path):
    run["tar czf"] = tarred(run, tmp_path)
    bilm = make_bilm(seed=2)
    load_weights(bilm, run[kind])
    assert same(bilm, model.bilm)
    softmax = find_softmax(run[kind], bilm.options)
    assert torch.equal(softmax.weight, model.softmax.weight)
    assert torch.equal(softmax.bias, model.softmax.bias)
    assert (softmax.words, softmax.counts) == (WORDS, COUNTS)


def test_elmo_can_take_its_weights_from_an_archive(model, run, make_options, tmp_path):
    (tmp_path / "options.json").write_text(json.dumps(make_options()))
    assert same(load_bilm(tmp_path / "options.json", run["archive"]), model.bilm)
    assert same(load_bilm(tmp_path / "options.json", str(run["folder"])), model.bilm)


def test_a_recovered_run_reads_its_bilm_from_files_in_the_home_folder(
    make_bilm, make_options, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "options.json").write_text(json.dumps(make_options()))
    save_weights(make_bilm(seed=1), tmp_path / "weights.hdf5")
    files = ("~/options.json", "~/weights.hdf5")
    bilm = load_bilm(*files)
    # As if the run had been killed after its first validation, without a checkpoint.
    torch.save(StandIn(bilm).state_dict(), tmp_path / "best.th")
    assert same(load_bilm(*files, serialization_dir=str(tmp_path)), bilm)


def test_the_bilm_of_a_task_is_found_under_any_name(make_bilm, tmp_path):
    inside = make_bilm(seed=3, n_layers=1)
    model = torch.nn.ModuleDict({"embedder": StandIn(inside), "tagger": torch.nn.Linear(2, 3)})
    _, archive = save_run(model, Vocabulary(), tmp_path / "task")
    found = TrainedModel.read(archive).bilm()
    assert found.options == inside.options
    assert same(found, inside)
    assert not found.training
    assert find_softmax(archive, inside.options) is None


def test_parameters_with_the_names_of_packed_ones_stay(make_bilm, tmp_path):
    inside, other = make_bilm(), torch.nn.Module()
    for name in ("fingerprint", "int8", "scales"):
        other.register_buffer(name, torch.ones(2, 3))
    others = torch.nn.ModuleDict({"a": other, "b": torch.nn.Linear(2, 3)})
    others["b"].register_buffer("int8", torch.ones(2, 3))
    model = torch.nn.ModuleDict({"embedder": StandIn(inside), "others": others})
    _, archive = save_run(model, Vocabulary(), tmp_path / "task")
    assert same(TrainedModel.read(archive).bilm(), inside)


def test_a_model_of_several_bilms_is_refused(make_bilm, tmp_path):
    model = torch.nn.ModuleDict({name: StandIn(make_bilm()) for name in ("left", "right")})
    trained = TrainedModel.read(save_run(model, Vocabulary(), tmp_path / "two")[0])
    with pytest.raises(ConfigurationError, match="one biLM; the model holds left.bilm, right.b"):
        trained.bilm()


def test_half_precision_is_widened(model, make_bilm, tmp_path):
    model.bilm.to(torch.bfloat16)
    folder, _ = save_run(model, Vocabulary(), tmp_path / "run")
    bilm = TrainedModel.read(folder).bilm()
    for name, parameter in bilm.named_parameters():
        assert torch.equal(parameter, model.bilm.get_parameter(name).float()), name


@pytest.mark.parametrize(
    "changes, expected",
    [
        (dict(dim=21), "expected `lstm.dim` 21, found 20. Use the options with which"),
        (dict(bidirectional=False), "expected `bidirectional` False, found True"),
        (dict(activation="tanh"), "expected `char_cnn.activation` 'tanh', found 'relu'"),
    ],
)
def test_another_shape_is_named_by_its_first_setting(run, make_bilm, changes, expected):
    bilm = make_bilm(**changes)
    before = [parameter.clone() for parameter in bilm.parameters()]
    with pytest.raises(ConfigurationError, match=f"run.tar.gz does not fit.*{expected}"):
        load_weights(bilm, run["archive"])
    assert all(torch.equal(*pair) for pair in zip(before, bilm.parameters()))


def refused(path, expected):
    with pytest.raises(ConfigurationError) as error:
        TrainedModel.read(path)
    assert str(path) in str(error.value)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_trained_model_is_refused(tmp_path, weight_file):
    refused(tmp_path / "none.tar.gz", "does not exist. Expected a model.tar.gz or the folder of")
    refused(tmp_path, "holds no trained model: expected weights.th or best.th in it")
    refused(weight_file, "damaged, cut short, or no model.tar.gz")


@pytest.mark.parametrize("kept", [0.1, 0.95])
def test_a_part_of_an_archive_is_refused(run, kept):
    content = run["archive"].read_bytes()
    run["archive"].write_bytes(content[: int(len(content) * kept)])
    refused(run["archive"], "damaged, cut short")


@pytest.mark.parametrize(
    "change, expected",
    [
        (lambda state: {"epoch": 3}, "tensors and their names, found"),
        (lambda state: {0: torch.zeros(1)}, "tensors and their names, found"),
        (lambda state: {"a.options_json": [1]}, "tensors and their names, found"),
        (lambda state: {"a": torch.zeros(1)}, "the model holds none. Models that are trained as"),
        (
            lambda state: {name: value + value for name, value in state.items()},
            "as JSON in the parameter options_json, found",
        ),
        (None, "(best.th) cannot be read; it is damaged, cut short"),
    ],
)
def test_weights_without_a_bilm_are_refused(model, run, change, expected):
    path = run["folder"] / "best.th"
    if change is None:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        torch.save(change(model.state_dict()), path)
    with pytest.raises(ConfigurationError) as error:
        TrainedModel.read(run["folder"]).bilm()
    assert expected in str(error.value)
    path.rename(run["folder"] / "model_state_e0_b7.th")
    refused(run["folder"], "A training run writes the latter after its first validation")


class Executed:
    def __reduce__(self):
        return pytest.fail, ("the archive was executed",)


def test_nothing_in_an_archive_is_executed(tmp_path):
    for number, content in enumerate([Executed(), {"bilm.bias": Executed()}]):
        folder = tmp_path / str(number)
        folder.mkdir()
        torch.save(content, folder / "weights.th")
        refused(folder, "holds more than tensors")
        (folder / "weights.th").write_bytes(pickle.dumps(content))
        refused(folder, "cannot be read")
