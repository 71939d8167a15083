from pathlib import Path
from typing import Any, Callable

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
        files = {name: str(value) for name, value in config.items() if isinstance(value, Path)}
        nlp.add_pipe(component, config={**config, **files})
        return nlp

    return make
