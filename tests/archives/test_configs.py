"""What the configuration of an archive may execute, and what in it limits reading."""

import io
import os
import pickle
import threading

import pytest
import torch
from allennlp.common.registrable import Registrable
from transformers import AutoConfig

from elmo_plugin.archives.configs import registered_types_only, without_limits
from tests.tagger import saved

READER = {"type": "interleaving", "readers": {"a": {"max_instances": 0}, "b": {"x": 1}}}


@pytest.mark.parametrize(
    "config, overrides, lifted",
    [
        (
            {
                "dataset_reader": {**READER, "max_instances": None},
                "data_loader": {"drop_last": False, "batch_sampler": {"drop_last": True}},
                "trainer": {"max_instances": 3},
            },
            '{"model.x": 1}',
            {
                "dataset_reader.readers.a.max_instances": (0, None),
                "data_loader.batch_sampler.drop_last": (True, None),
            },
        ),
        # A sample becomes the whole file.
        (
            {
                "dataset_reader": {"fraction": 0.5, "readers": {"a": {"fraction": 1.0}}},
            },
            {},
            {"dataset_reader.fraction": (0.5, 1)},
        ),
        # Evaluation does not use the other one.
        (
            {
                "data_loader": {"batches_per_epoch": 5},
                "validation_data_loader": {"batches_per_epoch": 6},
            },
            "",
            {"validation_data_loader.batches_per_epoch": (6, None)},
        ),
        ({"dataset_reader": READER}, {"dataset_reader.readers.a.max_instances": 7}, {}),
        ({"dataset_reader": READER}, {"dataset_reader.readers.a": {"max_instances": 7}}, {}),
        ({"dataset_reader": READER}, {"dataset_reader": {"type": "other"}}, {}),
    ],
)
def test_limits_are_lifted_unless_overrides_set_them(config, overrides, lifted):
    given, found = without_limits(config, overrides)
    assert found == {name: before for name, (before, _) in lifted.items()}
    assert {name: given[name] for name in found} == {name: to for name, (_, to) in lifted.items()}


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
    resolve, entered = Registrable.__dict__["resolve_class_name"], threading.Event()

    def enter():
        with registered_types_only("second.tar.gz"):
            entered.set()

    thread = threading.Thread(target=enter, daemon=True)
    with registered_types_only("first.tar.gz"):
        thread.start()
        assert not entered.wait(0.2)
    thread.join(10)
    assert entered.is_set()
    assert Registrable.__dict__["resolve_class_name"] is resolve


def test_code_of_a_transformer_is_refused_without_asking(tmp_path, monkeypatch):
    config = '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}'
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "evil.py").write_text("import pytest; pytest.fail('it was executed')\n")
    monkeypatch.setattr("builtins.input", lambda question: "y")
    with registered_types_only("evil.tar.gz"):
        with pytest.raises(ValueError, match="custom code"):
            AutoConfig.from_pretrained(str(tmp_path))
