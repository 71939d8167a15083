"""Models of the tests, each trained once in a run, whatever the number of processes."""

import os
from pathlib import Path
from typing import Any, Dict

import pytest
from allennlp.commands.train import train_model_from_file
from filelock import FileLock

FIXTURES = Path(__file__).parent.parent / "fixtures"
# As many as make the model predict something other than the most frequent label.
NUM_EPOCHS = {"squad": 2, "snli": 2, "srl": 2, "coref": 4, "ner": 15, "sst": 1}
# Of the tasks with users' own files.
OWN_EPOCHS = {"tagger": 5, "classifier": 1, "pairs": 2}


def train_once(
    factory: pytest.TempPathFactory, name: str, experiment: str, overrides: Dict[str, Any]
) -> Path:
    """The archive of `fixtures/experiments/<experiment>.jsonnet`, trained by who asks first."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # That of all workers.
        folder = folder.parent
    out = folder / "trained" / name
    out.parent.mkdir(exist_ok=True)
    with FileLock(f"{out}.lock"):
        if not (out / "model.tar.gz").exists():
            path = FIXTURES / f"experiments/{experiment}.jsonnet"
            train_model_from_file(path, out, overrides=overrides, force=out.exists())
    return out / "model.tar.gz"


def train_task(factory: pytest.TempPathFactory, experiment: str) -> Path:
    """The archive of a task's experiment, such as "ner" or "ner_elmo"."""
    epochs = {**NUM_EPOCHS, **OWN_EPOCHS}[experiment.removesuffix("_elmo")]
    overrides = {"trainer.num_epochs": epochs}
    return train_once(factory, experiment, experiment, overrides)
