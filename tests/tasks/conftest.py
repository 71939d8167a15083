from functools import lru_cache
from pathlib import Path
from typing import Callable

import pytest
from allennlp.commands.train import train_model_from_file
from allennlp.models import Archive, load_archive

import elmo_plugin.plugin  # noqa: F401

FIXTURES = Path(__file__).parents[2] / "fixtures"
# As many as make the model predict something other than the most frequent label.
NUM_EPOCHS = {"squad": 2, "snli": 2, "srl": 2, "coref": 4, "ner": 15, "sst": 1}


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Callable[[str], Archive]:
    """Trains a task's baseline on its fixture corpus when a test first asks for it."""

    @lru_cache(maxsize=None)
    def train(task: str) -> Archive:
        out = tmp_path_factory.mktemp(task) / "out"
        overrides = {"trainer.num_epochs": NUM_EPOCHS[task]}
        train_model_from_file(FIXTURES / f"experiments/{task}.jsonnet", out, overrides=overrides)
        return load_archive(out / "model.tar.gz")

    return train
