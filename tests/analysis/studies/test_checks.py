import logging

import pytest
import torch

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.analysis.studies.checks import check_experiments
from elmo_plugin.analysis.studies.study import read_study
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped


def runs_of(name):
    return read_study(shipped("fixtures/studies") / f"{name}.jsonnet").runs


@pytest.mark.parametrize("name", ["table1", "table7"])
def test_what_a_study_trains_can_be_built(name, monkeypatch):
    started = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: started.append("empty"))
    runs = runs_of(name)
    check_experiments(runs, started.append)
    # One run of each cell. No memory of a GPU is kept.
    assert len(started) - 1 == len({(run.row, run.column) for run in runs})
    assert started[-1] == "empty"


def change_optimizer(experiment):
    experiment["trainer"]["optimizer"]["speed"] = 3


def leave_nothing(experiment):
    experiment["dataset_reader"]["fraction"] = 1e-9


def name_readers(experiment):
    experiment["dataset_reader"] = "elmo-ner"
    experiment["validation_dataset_reader"] = "no-such-reader"


def read_several_tasks(experiment):
    readers = {"first": experiment["dataset_reader"], "second": "elmo-ner"}
    experiment["dataset_reader"] = {"type": "multitask", "readers": readers}


@pytest.mark.parametrize(
    "change, message",
    [
        (change_optimizer, ".*speed"),
        (leave_nothing, ".*leaves nothing"),
        (name_readers, ".*no-such-reader"),
        # The reader is built; its corpora would have to be a dictionary, too.
        (read_several_tasks, "(?!.*Extra param)"),
    ],
)
def test_what_cannot_be_built_is_found_beforehand(monkeypatch, change, message):
    monkeypatch.setattr(logging.root.manager, "disable", logging.INFO)
    (first, *_) = runs_of("table1")
    change(first.experiment)
    with pytest.raises(ConfigurationError, match=f"NER, fixed vectors, seed 1: {message}"):
        check_experiments([first])
    # What its caller does not log stays so.
    assert logging.root.manager.disable == logging.INFO
