import logging

import pytest
import torch

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.analysis.studies.checks import check_experiments
from elmo_plugin.analysis.studies.study import read_study
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resources import shipped


@pytest.mark.parametrize("name", ["table1", "table7"])
def test_what_a_study_trains_can_be_built(name):
    started = []
    runs = read_study(shipped("fixtures/studies") / f"{name}.jsonnet").runs
    check_experiments(runs, started.append)
    # One run of each cell.
    assert len(started) == len({(run.row, run.column) for run in runs})


def test_the_checks_keep_no_memory_of_a_gpu(monkeypatch):
    calls = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("empty"))
    (first, *_) = read_study(shipped("fixtures/studies") / "table1.jsonnet").runs
    check_experiments([first], lambda run: calls.append("build"))
    assert calls == ["build", "empty"]


def test_a_fraction_that_leaves_nothing_is_found_beforehand():
    (first, *_) = read_study(shipped("fixtures/studies") / "table1.jsonnet").runs
    first.experiment["dataset_reader"]["fraction"] = 1e-9
    with pytest.raises(ConfigurationError, match="leaves nothing"):
        check_experiments([first])


def test_a_reader_may_be_its_name():
    (first, *_) = read_study(shipped("fixtures/studies") / "table1.jsonnet").runs
    first.experiment["dataset_reader"] = "elmo-ner"
    first.experiment["validation_dataset_reader"] = "no-such-reader"
    with pytest.raises(ConfigurationError, match="no-such-reader"):
        check_experiments([first])


def test_a_reader_for_several_tasks_has_its_limit_in_those_of_the_tasks():
    (first, *_) = read_study(shipped("fixtures/studies") / "table1.jsonnet").runs
    readers = {"first": first.experiment["dataset_reader"], "second": "elmo-ner"}
    first.experiment["dataset_reader"] = {"type": "multitask", "readers": readers}
    # The reader is built; its corpora would have to be a dictionary, too.
    with pytest.raises(ConfigurationError, match="NER, fixed vectors, seed 1: (?!.*Extra param)"):
        check_experiments([first])


def test_the_run_is_named(monkeypatch):
    monkeypatch.setattr(logging.root.manager, "disable", logging.INFO)
    (first, *_) = read_study(shipped("fixtures/studies") / "table1.jsonnet").runs
    first.experiment["trainer"]["optimizer"]["speed"] = 3
    with pytest.raises(ConfigurationError, match="NER, fixed vectors, seed 1: .*speed"):
        check_experiments([first])
    # What its caller does not log stays so.
    assert logging.root.manager.disable == logging.INFO
