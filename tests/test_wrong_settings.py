"""Wrong settings of experiments and of `--overrides`, and files that are none: one sentence."""

import json
import re
from pathlib import Path

import pytest
from allennlp.common import Params

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.environment import DEFAULTS, note_on_fixtures, set_defaults
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from tests.commands.running import refusal

PROJECT = Path(__file__).parents[1]
EXPERIMENT = str(PROJECT / "fixtures/experiments/sst.jsonnet")


@pytest.fixture
def changed(tmp_path):
    """An experiment with a change, in jsonnet."""

    def changed(name, change):
        path = tmp_path / "changed.jsonnet"
        path.write_text(f"(import '{PROJECT}/experiments/{name}.jsonnet') + {change}")
        return Params.from_file(path)

    return changed


WRONG_SETTINGS = [
    ("sst", "num_epoch: 3", "sst: no such settings: num_epoch; there are batch_size, "),
    ("sst_elmo", "elmo+: { lamda: 1 }", "elmo: no such settings: lamda; there are at, .*lambda, "),
    ("coref", "scoring+: { depth: 2 }", "coref.scoring: no such settings: depth; there are dro"),
    ("sst_elmo", "elmo+: { lambda: 'x' }", "elmo: expected `lambda` to be a number of at least 0,"),
    ("sst_elmo", "elmo+: { trainable: 'yes' }", '`trainable` to be true or false, found "yes"'),
    ("sst_elmo", "elmo: 'original'", "sst: expected `elmo` to be an object or null, found"),
    ("sst", "num_epochs: 'three'", "sst: expected `num_epochs` to be a whole number of at least 1"),
    ("ner", "hidden_sizes: [0, 2]", r"`hidden_sizes` to be a list of whole .* found \[0,2\]"),
    ("coref", "scoring+: { dropout: 2 }", "coref.scoring: expected `dropout` to be a number from"),
    ("sst_elmo", "elmo+: { at: 'top' }", "`at` to be one of input, output, both, found"),
    ("sst_elmo", "elmo+: { layers: 'top' }", "`layers` to be one of all, last or a list of whole"),
    ("sst", "granularity: '3'", "`granularity` to be one of 5-class, 2-class, found"),
    ("ner", "tag: 'ner'", "`tag` to be one of upos, xpos, feats, deprel, found"),
    ("ner", "tags: 'ner'", "`tags` to be one of spans, plain or null, found"),
    ("sst", "batch_size: null", "`batch_size` to be a whole number of at least 1, found null"),
    ("sst", "patience: 0", "`patience` to be a whole number of at least 1 or null, found 0"),
    ("sst", "random_seed: 'abc'", "`random_seed` to be a whole number of at least 0, found"),
    ("sst", "words: ['elmo']", "sst: expected `words` to be a list from words.libsonnet"),
    ("sst", "corpus: 'train.txt'", "`corpus` to be an object { train, dev }, or"),
    ("bilm_small", "dim: -3", "bilm: expected `dim` to be a whole number of at least 1, found -3"),
    ("bilm_small", "dims: 3", "bilm: no such settings: dims; there are accumulate, "),
    ("bilm_finetune", "initial: 'x'", "`initial` to be an object { options_file, weight_file } or"),
]


@pytest.mark.parametrize("name, setting, message", WRONG_SETTINGS, ids=lambda text: text[:24])
def test_a_wrong_setting_is_named_as_it_was_written(changed, name, setting, message):
    with pytest.raises(ConfigurationError, match=message):
        changed(name, f"{{ settings+: {{ {setting} }} }}")


def test_a_seed_of_the_environment_is_a_number(monkeypatch):
    monkeypatch.setenv("ELMO_SEED", "abc")
    with pytest.raises(ConfigurationError, match="ELMO_SEED to be a whole number, found abc"):
        Params.from_file(PROJECT / "experiments/sst.jsonnet")


def known(library):
    """The names of the settings of a library, from its defaults."""
    text = (PROJECT / f"experiments/lib/{library}.libsonnet").read_text(encoding="utf-8")
    begin = r"(?:local (?:defaults|shared\(name\)) = (?:own\.settings )?|  settings: )"
    defaults = re.search(
        rf"^{begin}\{{\n(.*?)\n(?:\}};|  \}},\n\n)", text, re.DOTALL | re.MULTILINE
    )[1]
    return set(re.findall(r"^ {2,4}(\w+): ", defaults, re.MULTILINE))


def test_each_setting_has_a_kind_and_each_kind_a_setting():
    libraries = ["task", "elmo", "bilm", "own", "ner", "srl", "snli", "squad", "sst", "coref"]
    text = (PROJECT / "experiments/lib/settings.libsonnet").read_text(encoding="utf-8")
    kinds = re.search(r"local kinds = \{\n(.*?)\n\};", text, re.DOTALL)[1]
    of_settings = re.findall(r"^  (\w+): \[", kinds, re.MULTILINE)
    assert len(of_settings) == len(set(of_settings)) > 60
    assert set(of_settings) == set.union(*map(known, libraries))


WRONG_OVERRIDES = [
    (
        {"settings.num_epochs": 3},
        "--overrides: settings exist in jsonnet only. Override trainer.num_epochs, or write a "
        f"file: (import '{EXPERIMENT}') + {{ settings+: {{ num_epochs: 3 }} }}",
    ),
    ({"settings": {"num_epochs": 3}}, 'settings+: {"num_epochs": 3} }'),
    ({"settings.elmo.lambda": 1}, "+ { settings+: { elmo+: { lambda: 1 } } }"),
    ({"trainr.num_epochs": 3}, "no setting trainr.num_epochs. Did you mean trainer.num_epochs?"),
    ({"model.dropout.x": 3}, "--overrides: overrides for 'model.dropout.*' expected list or dict"),
    ({"trainr": {}}, "The experiment (TrainModel) has no settings trainr. Correct or remove them."),
    ({"model.encoder.size": 3}, "`model.encoder` (BiLstm) has no settings size. Correct or remove"),
    (
        {"trainer.num_epochs": "three"},
        'Expected `trainer.num_epochs` to be a whole number, found "',
    ),
    ({"trainer.num_epochs": 0}, "Expected `trainer.num_epochs` to be at least 1, found 0."),
    ({"model.dropout": "a"}, 'Expected `model.dropout` to be a number, found "a".'),
    ({"model.dropout": [0.1]}, "Expected `model.dropout` to be a number, found [0.1]."),
    ({"model.encoder.hidden_size": -3}, "`model.encoder.hidden_size` to be at least 1, found -3."),
    ({"data_loader.batch_sampler.batch_size": 0}, "batch_sampler.batch_size` to be at least 1"),
    ({"trainer.optimizer.lr": -1}, "`trainer.optimizer`: AdamOptimizer cannot be built with"),
    ({"trainer.optimizer": "adamm"}, "found 'adamm'. Did you mean adam? A type of your own needs"),
    ({"model.type": "elmo-ssst"}, "Expected `model.type` to be one of "),
    ({"random_seed": "abc"}, "Expected `random_seed` to be a whole number from 0 to 4294967295"),
    (
        {"numpy_seed": -1},
        "Expected `numpy_seed` to be a whole number from 0 to 4294967295, found -1",
    ),
    ({"train_data_path": None}, "Expected `train_data_path` to be a path, found null."),
    ({"trainer.validation_metric": "accuracy"}, "metric` to be a name after + or -, found"),
    ({"trainer.cuda_device": 99}, "There is no GPU 99: PyTorch finds "),
    ({"distributed": {"cuda_devices": [98, 99]}}, "There is no GPU 98: PyTorch finds "),
    ([1], 'Expected --overrides as a JSON object such as {"trainer.num_epochs": 3}, found [1].'),
    ("a=1", "found a=1 (1:2: not a binary operator: =)."),
]


@pytest.mark.parametrize("given, message", WRONG_OVERRIDES, ids=lambda value: str(value)[:30])
def test_a_wrong_override_is_named_as_it_was_written(tmp_path, given, message):
    text = given if isinstance(given, str) else json.dumps(given)
    assert message in refusal("train", EXPERIMENT, "-s", tmp_path / "run", "-o", text)


def test_a_metric_that_there_is_not_is_answered_with_those_there_are(tmp_path):
    overrides = {"trainer.validation_metric": "+acuracy", "dataset_reader.max_instances": 20}
    message = refusal("train", EXPERIMENT, "-s", tmp_path / "run", "-o", json.dumps(overrides))
    assert message == "Expected `trainer.validation_metric` among accuracy, loss, found acuracy."


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("sts.jsonnet", None, "No such experiment: sts.jsonnet. Did you mean sst.jsonnet?"),
        (
            "none",
            None,
            "No such experiment: none. `elmo experiments FOLDER` copies those that come",
        ),
        (".", None, ". is a folder; expected the jsonnet file of an experiment in it."),
        ("a.jsonnet", "{ a: 1 b: 2 }", "a.jsonnet:1:8: expected a comma before next field."),
        ("a.jsonnet", "import 'experiments/sst.jsonnet'", "`elmo experiments FOLDER` copies those"),
    ],
)
def test_an_experiment_that_cannot_be_read_is_named(tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    Path("sst.jsonnet").touch()
    if content:
        Path(name).write_text(content)
    assert message in refusal("train", name, "-s", "run")


def test_a_folder_that_a_run_has_left_is_answered_with_the_ways_out(tmp_path):
    arguments = ("train", EXPERIMENT, "-s", tmp_path / "run")
    (tmp_path / "run").touch()
    assert refusal(*arguments).endswith("run is a file; expected the name of a new folder.")
    (tmp_path / "run").unlink()
    (tmp_path / "run").mkdir()
    (tmp_path / "run/thesis.tex").touch()
    assert refusal(*arguments).endswith("run exists and is not empty. Choose a new folder.")
    Params({"random_seed": 3}).to_file(str(tmp_path / "run/config.json"))
    assert "--recover to continue this run, or --force to delete it" in refusal(*arguments)
    message = refusal(*arguments, "--recover")
    assert "run was trained with other settings: random_seed, " in message


def test_a_package_that_there_is_not_is_named(tmp_path):
    message = refusal("train", EXPERIMENT, "-s", tmp_path / "run", "--include-package", "nowhere.x")
    assert message.startswith("--include-package nowhere.x: no such package is installed")


def test_training_on_a_fixture_is_said_only_if_nobody_asked_for_it(monkeypatch):
    fixture = f"{shipped(DEFAULTS['ELMO_DATA'])}/sst/train.txt"
    assert note_on_fixtures("/corpora/sst/train.txt") is None
    monkeypatch.setattr("elmo_plugin.environment._FILLED", {})
    monkeypatch.setenv("ELMO_DATA", str(shipped(DEFAULTS["ELMO_DATA"])))
    set_defaults()
    assert note_on_fixtures(fixture) is None
    monkeypatch.delenv("ELMO_DATA")
    set_defaults()
    assert note_on_fixtures(fixture).startswith("ELMO_DATA is not set, so this trains on a tiny")


def test_a_file_of_a_bilm_without_the_other_is_refused(monkeypatch):
    for name, value in (("ELMO_OPTIONS", ""), ("ELMO_WEIGHTS", "/weights.hdf5")):
        monkeypatch.setenv(name, value)
    set_defaults()
    with pytest.raises(ConfigurationError, match="Expected both files of a biLM or neither"):
        Params.from_file(PROJECT / "experiments/sst_elmo.jsonnet")
