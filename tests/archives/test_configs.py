"""What the configuration of an archive may execute, and what in it limits reading."""

import io
import os
import pickle
import threading

import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.registrable import Registrable
from transformers import AutoConfig

from elmo_plugin.archives.configs import check_config, registered_types_only, without_limits
from tests.tagger import saved

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


def test_a_sample_becomes_the_whole_file():
    config = {
        "dataset_reader": {"fraction": 0.5, "readers": {"a": {"fraction": 1.0}}},
        "validation_data_loader": {"fraction": 0.5},
    }
    overrides, found = without_limits(config, {})
    assert found == {"dataset_reader.fraction": 0.5}
    assert overrides == {"dataset_reader.fraction": 1}


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


def embedding(value):
    return {"model": {"embedders": [{"transformer_kwargs": {"weights_only": value}}]}}


@pytest.mark.parametrize("value", [False, None, 0, "true"])
def test_a_configuration_may_not_say_that_weights_are_more_than_tensors(value):
    check_config(embedding(True), "evil.tar.gz")
    place = "model.embedders.0.transformer_kwargs.weights_only in config.json"
    with pytest.raises(ConfigurationError, match=f"{place}, {value!r}, would allow a weight file"):
        check_config(embedding(value), "evil.tar.gz")


class Executed:
    def __reduce__(self):
        return pytest.fail, ("a file that an archive names was executed",)


def test_neither_arguments_nor_environment_let_weights_execute_code(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    before = dict(os.environ)
    evil = saved({"a": Executed()})
    with registered_types_only("evil.tar.gz"), registered_types_only("inner.tar.gz"):
        for settings in ({}, {"weights_only": False}):
            with pytest.raises(pickle.UnpicklingError):
                torch.load(io.BytesIO(evil), **settings)
    assert dict(os.environ) == before


def test_contexts_of_two_threads_follow_each_other():
    resolve = Registrable.__dict__["resolve_class_name"]
    inside, leave, entered = threading.Event(), threading.Event(), []

    def first():
        with registered_types_only("first.tar.gz"):
            inside.set()
            assert leave.wait(10)
            entered.append("first")

    def second():
        assert inside.wait(10)
        with registered_types_only("second.tar.gz"):
            entered.append("second")

    threads = [threading.Thread(target=function, daemon=True) for function in (first, second)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    # Time for the second to enter too, if it could.
    threads[1].join(0.2)
    leave.set()
    for thread in threads:
        thread.join()
    assert entered == ["first", "second"]
    assert Registrable.__dict__["resolve_class_name"] is resolve


def test_code_of_a_transformer_is_refused_without_asking(tmp_path, monkeypatch):
    config = '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}'
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "evil.py").write_text("import pytest; pytest.fail('it was executed')\n")
    monkeypatch.setattr("builtins.input", lambda question: "y")
    with registered_types_only("evil.tar.gz"):
        with pytest.raises(ValueError, match="custom code"):
            AutoConfig.from_pretrained(str(tmp_path))
