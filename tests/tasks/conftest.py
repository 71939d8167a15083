from functools import lru_cache
from typing import Callable, List

import pytest
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.models import Archive, load_archive
from allennlp.predictors import Predictor

import elmo_plugin.plugin  # noqa: F401
from tests.tasks.small import make_reader, read
from tests.trained import train_task


@pytest.fixture(scope="module")
def reader(request) -> DatasetReader:
    """A reader of the task whose folder a test is in."""
    return make_reader(request.path.parent.name)


@pytest.fixture(scope="module")
def instances(request) -> List[Instance]:
    """The training corpus of the task whose folder a test is in."""
    return read(request.path.parent.name)


@pytest.fixture(scope="module")
def vocab(instances) -> Vocabulary:
    return Vocabulary.from_instances(instances)


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Callable[[str], Archive]:
    """A task's baseline, trained on its fixture corpus."""
    return lru_cache(maxsize=None)(lambda task: load_archive(train_task(tmp_path_factory, task)))


@pytest.fixture
def archive(request, trained) -> Archive:
    """The trained baseline of the task whose folder a test is in."""
    return trained(request.path.parent.name)


@pytest.fixture
def make(archive) -> Callable[..., Predictor]:
    """Its predictor, with settings."""
    return lambda **settings: Predictor.from_archive(archive, extra_args=settings)


@pytest.fixture
def predictor(make) -> Predictor:
    return make()
