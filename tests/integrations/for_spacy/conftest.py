from pathlib import Path
from typing import Any, Callable, Dict

import pytest
import spacy
from spacy.language import Language

# As an installation does by its entry points.
import elmo_plugin.integrations.for_spacy  # noqa: F401
import elmo_plugin.plugin  # noqa: F401
from tests.trained import train_task


@pytest.fixture(scope="session")
def archive_of(tmp_path_factory) -> Callable[[str], Path]:
    """The archive of a task's baseline, trained on its fixture corpus."""
    return lambda task: train_task(tmp_path_factory, task)


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
