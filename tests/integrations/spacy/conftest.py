from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import spacy
from allennlp.commands.train import train_model_from_file
from spacy.language import Language

# As an installation does by its entry points.
import elmo_plugin.integrations.spacy  # noqa: F401
import elmo_plugin.plugin  # noqa: F401
from tests.tasks.conftest import FIXTURES, NUM_EPOCHS


@pytest.fixture(scope="session")
def archive_of(tmp_path_factory) -> Callable[[str], Path]:
    """Trains a task's baseline on its fixture corpus when a test first asks for it."""

    @lru_cache(maxsize=None)
    def train(task: str) -> Path:
        out = tmp_path_factory.mktemp(task) / "out"
        overrides = {"trainer.num_epochs": NUM_EPOCHS[task]}
        train_model_from_file(FIXTURES / f"experiments/{task}.jsonnet", out, overrides=overrides)
        return out / "model.tar.gz"

    return train


@pytest.fixture
def pipeline() -> Callable[..., Language]:
    """A pipeline of one of our components, after a sentencizer."""

    def make(component: str, **config: Any) -> Language:
        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        nlp.add_pipe(component, config=_as_json(config))
        return nlp

    return make


def _as_json(config: Dict[str, Any]) -> Dict[str, Any]:
    return {
        name: str(value) if isinstance(value, Path) else value for name, value in config.items()
    }
