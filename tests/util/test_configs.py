"""What limits reading in a configuration, at whatever depth it stands."""

import pytest

from elmo_plugin.util.configs import without_limits

READER = {"type": "interleaving", "readers": {"a": {"max_instances": 0}, "b": {"x": 1}}}


def limits(config, overrides=""):
    return without_limits(config, overrides)[1]


def test_readers_within_readers_and_samplers_within_loaders_are_found():
    config = {
        "dataset_reader": {**READER, "max_instances": None},
        "data_loader": {"drop_last": False, "batch_sampler": {"drop_last": True}},
        "trainer": {"max_instances": 3},
    }
    overrides, found = without_limits(config, '{"model.x": 1}')
    assert found == {
        "dataset_reader.readers.a.max_instances": 0,
        "data_loader.batch_sampler.drop_last": True,
    }
    assert overrides == {"model.x": 1, **dict.fromkeys(found)}


def test_what_evaluation_does_not_use_is_left_alone():
    config = {
        "data_loader": {"batches_per_epoch": 5},
        "validation_data_loader": {"batches_per_epoch": 6},
    }
    assert limits(config) == {"validation_data_loader.batches_per_epoch": 6}


@pytest.mark.parametrize(
    "overrides",
    [
        {"dataset_reader.readers.a.max_instances": 7},
        {"dataset_reader.readers.a": {"max_instances": 7}},
        {"dataset_reader": {"type": "other", "max_instances": 7}},
    ],
)
def test_overrides_decide(overrides):
    assert limits({"dataset_reader": READER}, overrides) == {}
