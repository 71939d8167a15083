from functools import lru_cache
from typing import Callable

import pytest
from allennlp.data import Vocabulary
from allennlp.models import Archive, load_archive

import elmo_plugin.plugin  # noqa: F401
from tests.trained import train_task


@pytest.fixture(scope="module")
def vocab(instances) -> Vocabulary:
    """Of the fixture `instances` of a test's own module."""
    return Vocabulary.from_instances(instances)


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Callable[[str], Archive]:
    """A task's baseline, trained on its fixture corpus."""
    return lru_cache(maxsize=None)(lambda task: load_archive(train_task(tmp_path_factory, task)))
