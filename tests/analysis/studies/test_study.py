import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from elmo_plugin.analysis.studies.study import (
    Run,
    check_inputs,
    digest_and_files,
    read_study,
)
from elmo_plugin.environment import set_defaults
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
SMALL = sorted((EXPERIMENTS.parent / "fixtures/studies").glob("*.jsonnet"))
SHIPPED = sorted((EXPERIMENTS / "studies").glob("*.jsonnet"))

ROW = """
local paths = import 'EXPERIMENTS/lib/paths.libsonnet';
(import 'EXPERIMENTS/lib/study.libsonnet') {
  settings+: {
    title: 'A title',
    seeds: [1, 2],
    rows: [{
      name: 'NER',
      metric: 'f1-measure-overall',
      evaluate: paths.ner.test,
      settings: { num_epochs: 3 },
      columns: [
        { name: 'baseline', experiment: import 'EXPERIMENTS/ner.jsonnet', paper: 90.15 },
        {
          name: 'last layer',
          experiment: import 'EXPERIMENTS/ner_elmo.jsonnet',
          settings: { elmo+: { layers: 'last' } },
        },
      ],
    }],
  },
}
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    set_defaults()


@pytest.fixture
def written(tmp_path):
    def write(old="", new=""):
        assert old in ROW
        path = tmp_path / "study.jsonnet"
        path.write_text(ROW.replace(old, new).replace("EXPERIMENTS", str(EXPERIMENTS)))
        return path

    return write


def test_settings_of_row_column_seed_and_fraction_reach_the_experiment(written):
    study = read_study(written("seeds: [1, 2]", "seeds: [1, 2], fractions: [0.1, 1]"))
    assert study.title == "A title"
    assert [column.paper for column in study.rows[0].columns] == [90.15, None]
    assert [run.name for run in study.runs][:3] == [
        "NER, baseline, 10 %, seed 1",
        "NER, last layer, 10 %, seed 1",
        "NER, baseline, seed 1",
    ]
    run = study.runs[-3]
    assert (run.column, run.fraction, run.seed) == ("last layer", 0.1, 2)
    assert run.experiment["trainer"]["num_epochs"] == 3
    assert run.experiment["model"]["placement"]["elmo"]["layers"] == "last"
    assert run.experiment["random_seed"] == run.experiment["dataset_reader"]["fraction_seed"] == 2
    assert run.experiment["dataset_reader"]["fraction"] == 0.1
    assert "fraction" not in run.experiment["validation_dataset_reader"]
    assert "fraction" not in study.runs[-1].experiment["dataset_reader"]
    assert len({run.digest for run in study.runs}) == len(study.runs) == 8
    # Settings of a row may depend on the fraction.
    settings = "settings: function(fraction) { num_epochs: 3 / fraction }, fractions: [0.1, 1],"
    study = read_study(written("settings: { num_epochs: 3 },", settings))
    epochs = [(run.fraction, run.experiment["trainer"]["num_epochs"]) for run in study.runs]
    assert set(epochs) == {(0.1, 30), (1, 3)}


def test_the_digest_is_that_of_contents_and_not_of_paths(written, tmp_path, monkeypatch):
    def digests():
        return [run.digest for run in read_study(written()).runs]

    before = digests()
    moved = tmp_path / "moved"
    shutil.copytree(Path(os.environ["ELMO_DATA"]) / "ner", moved / "ner")
    shutil.copy(os.environ["ELMO_GLOVE"], tmp_path / "vectors.txt.gz")
    monkeypatch.setitem(os.environ, "ELMO_DATA", str(moved))
    monkeypatch.setitem(os.environ, "ELMO_GLOVE", str(tmp_path / "vectors.txt.gz"))
    assert digests() == before
    options = Path(os.environ["ELMO_OPTIONS"]).read_text()
    (tmp_path / "options.json").write_text(options + "\n")
    monkeypatch.setitem(os.environ, "ELMO_OPTIONS", str(tmp_path / "options.json"))
    after = digests()
    # Another biLM changes what has ELMo only.
    assert after[::2] == before[::2] and not set(after[1::2]) & set(before[1::2])


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("num_epochs: 3", "num_epoch: 3", "ner: no such settings: num_epoch"),
        ("{ layers:", "{ layer:", "elmo: no such settings: layer"),
        ("metric: 'f1", "metrik: 'f1", "study: row NER has no such settings: metrik"),
        ("seeds: [1, 2]", "seeds: 3", "row NER: seeds and fractions should be lists"),
        ("seeds: [1, 2]", "seeds: [1, 2, 1]", "each of `seeds` once, found 1 several times"),
        ("elmo+: {", "elmo: {", "ner: settings.elmo lacks what elmo.libsonnet has: write elmo+:"),
        ("num_epochs: 3 }", "num_epochs: $.nothing }", "field does not exist: nothing ("),
        ("'last layer'", "'baseline'", "found baseline several times"),
        ("seeds: [1, 2]", "seeds: []", "expected runs, found none"),
        ("title: 'A title',", "", "study: set settings.title"),
        ("metric:", "num_baselines: 3, metric:", "number from 1 to 2, the number of its columns, "),
        ("paper:", "against: 'first', paper:", 'null or one of last layer, found "first"'),
        ("name: 'last layer'", "name: 1", "column 1: `name` should be a string, found 1"),
        ("paper: 90.15", "paper: '90.15'", 'should be a number or null, found "90.15"'),
        ("metric:", "percent: 'yes', metric:", 'should be true or false, found "yes"'),
        ("seeds: [1, 2]", "seeds: [1.5]", "`seeds` should be whole numbers, found 1.5"),
        ("seeds:", "fractions: ['all'], seeds:", '`fractions` should be numbers, found "all"'),
        ("import 'EXPERIMENTS/ner.jsonnet'", "{}", "its experiment has no `settings`"),
    ],
)
def test_a_mistake_is_one_sentence(written, old, new, message):
    with pytest.raises(ConfigurationError) as info:
        read_study(written(old, new))
    assert message in str(info.value) and "\n" not in str(info.value)


def test_a_missing_corpus_is_named(written):
    study = read_study(written("paths.ner.test", "'nowhere.conll'"))
    with pytest.raises(ConfigurationError) as info:
        check_inputs(study.runs)
    expected = "NER, baseline, seed 1: evaluate is nowhere.conll, which does not exist"
    assert str(info.value).startswith(expected)


@pytest.mark.parametrize("form", ["~/test.conll", "file://{home}/test.conll", "test.conll"])
def test_a_corpus_is_found_where_readers_find_it(written, tmp_path, monkeypatch, form):
    text = (shipped("fixtures/corpora/ner/test.conll")).read_bytes()
    path = written("paths.ner.test", repr(form.format(home=tmp_path)))
    monkeypatch.setenv("HOME", str(tmp_path))
    digests = set()
    for content in (text, text + text):
        (tmp_path / "test.conll.gz").write_bytes(gzip.compress(content))
        if form.startswith("file"):
            (tmp_path / "test.conll").write_bytes(content)
        with monkeypatch.context() as there:
            there.chdir(tmp_path)
            study = read_study(path)
            check_inputs(study.runs)
        digests.add(study.runs[0].digest)
    assert len(digests) == 2


@pytest.mark.parametrize(
    "corpus, names, named",
    [
        (["{}/a.txt", "{}/b.txt"], ["a.txt", "b.txt"], ""),
        ("{}/a.txt, {}/b.txt", ["a.txt", "b.txt"], "{}/a.txt"),
        ("{}", ["a.txt", "b.txt"], "{}"),
        ("{}", ["b.txt"], "{}"),
        ("{}/*.txt", ["a.txt", "b.txt"], ""),
        ("{}/../**/*.txt", ["a.txt", "b.txt"], ""),
        ("{}/*.txt", ["a.txt.gz", "b.txt.gz"], ""),
    ],
)
def test_a_corpus_may_be_several_files(tmp_path, corpus, names, named):
    # A comma in a path that exists does not separate.
    folder = tmp_path / ("a" if ", " in corpus else "a,b") / "text"
    (folder / "inner").mkdir(parents=True)
    for name in names:
        (folder / name).write_text(name)
    experiment = json.loads(json.dumps({"train_data_path": corpus}).replace("{}", str(folder)))
    run = Run("NER", "ELMo", 1, 1, None, experiment, "")
    check_inputs([run])
    before, hashed = digest_and_files(experiment, None)
    # All of them are part of the digest.
    assert sorted(os.path.basename(path) for path in hashed) == names
    (folder / names[-1]).write_text("changed")
    assert digest_and_files(experiment, None)[0] != before
    for name in names:
        (folder / name).unlink()
    with pytest.raises(ConfigurationError, match="which does not exist or has no files") as info:
        check_inputs([run])
    # What does not exist is split at its commas.
    assert f"train_data_path is {named.format(folder) if named else ''}" in str(info.value)


@pytest.mark.parametrize(
    "experiment, evaluate, changed",
    [
        ({"model": {"initial_weights": {"file": "{}/run"}}}, "", "run/best.th"),
        (
            {"dataset_reader": "text_classification_json", "test_data_path": "{}/run"},
            "",
            "run/best.th",
        ),
        ({"model": {"weight_file": "{}/run"}}, "", "run/best.th"),
        ({"vocabulary": {"type": "from_files", "directory": "{}/run"}}, "", "run/tokens.txt"),
        ({"vocabulary": {"type": "elmo-bilm", "text": "{}/x.en,{}/x.de"}}, "", "x.de"),
        ({"vocabulary": {"type": "elmo-bilm", "text": "{}/run"}}, "", "run/tokens.txt"),
        ({}, "{}/x.en,{}/x.de", "x.de"),
        ({}, "{}/run", "run/tokens.txt"),
        ({"e": {"type": "elmo-token-embedder", "bilm": "{}/run"}}, "", "run/best.th"),
        ({"e": {"type": "elmo-token-embedder", "bilm": "{}/run/options.json"}}, "", "run/best.th"),
    ],
)
def test_the_digest_has_all_that_an_experiment_names(tmp_path, experiment, evaluate, changed):
    (tmp_path / "run").mkdir()
    names = ["x.en", "x.de", "x.en.gz", "x.de.gz"]
    for name in (*names, "run/best.th", "run/tokens.txt", "run/options.json", "another.txt"):
        (tmp_path / name).write_text(name)
    inputs = json.loads(json.dumps(experiment).replace("{}/", f"{tmp_path}/"))
    evaluated = evaluate.replace("{}/", f"{tmp_path}/") or None

    def digest_after(changed):
        (tmp_path / changed).write_text("changed")
        return digest_and_files(inputs, evaluated)[0]

    before = digest_after("another.txt")
    _, files = digest_and_files(inputs, evaluated)
    assert str(tmp_path / changed) in files
    assert str(tmp_path / "another.txt") not in files
    assert digest_after("another.txt") == before != digest_after(changed)


def test_another_jsonnet_file_is_refused():
    with pytest.raises(ConfigurationError, match="expected a study, which imports"):
        read_study(EXPERIMENTS / "ner.jsonnet")
    with pytest.raises(ConfigurationError, match="no such file"):
        read_study("nowhere.jsonnet")


def test_every_study_has_a_small_one():
    assert [path.name for path in SMALL] == [path.name for path in SHIPPED]


def test_a_baseline_has_the_regularisation_of_elmo():
    runs = {
        (run.row, run.column): run
        for run in read_study(EXPERIMENTS / "studies/table1.jsonnet").runs
    }
    for task in ("SNLI", "SST"):
        columns = ("trained, regularised as with ELMo", "ELMo")
        models = [runs[task, column].experiment["model"] for column in columns]
        for model in models:
            # The penalty on the layers' scores, and the dropout of ELMo itself, are ELMo's.
            regexes = model.pop("regularizer", {"regexes": []})["regexes"]
            model["penalties"] = [regex for regex in regexes if regex[0] != "layer_scores"]
            model.pop("placement", None)
            model["text_field_embedder"] = None
        assert models[0] == models[1]


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.stem)
def test_the_studies_that_ship_can_be_read(path):
    # The small study imports the other one.
    study = read_study(path)
    check_inputs(study.runs)
    assert len({run.digest for run in study.runs}) <= 24
    assert {run.seed for run in study.runs} == {1}
    assert (EXPERIMENTS / "studies" / path.name).read_text(encoding="utf-8").startswith("// ")


def test_a_study_of_files_that_are_made_first_says_so():
    with pytest.raises(ConfigurationError, match="which does not exist"):
        check_inputs(read_study(EXPERIMENTS / "studies/table7.jsonnet").runs)
