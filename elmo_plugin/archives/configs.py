"""Checks the config.json of untrusted archives, and lifts its limits on the instances read."""

import os
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Dict, Iterator, Tuple, Type, Union
from unittest.mock import patch

from allennlp.common import util as allennlp_util
from allennlp.common.params import parse_overrides
from allennlp.common.registrable import Registrable

from elmo_plugin.util.errors import ConfigurationError

try:
    from transformers import dynamic_module_utils
except ImportError:
    # Not installed: nothing would run the code of its models.
    dynamic_module_utils = SimpleNamespace(TIME_OUT_REMOTE_CODE=0)

# The limits on what is read, with the values that lift them.
_LIMITS = {
    "max_instances": None,
    "batches_per_epoch": None,
    "drop_last": None,
    "fraction": 1,
    "dev_fraction": 0,
}
# Settings that make transformers or AllenNLP execute the code of a model or of a scorer.
_EXECUTED = ("trust_remote_code", "evalb_directory_path", "srl_eval_path")
# What `registered_types_only` replaces belongs to all threads: one at a time.
_LOCK = threading.RLock()


def check_config(config: Dict[str, Any], location: str) -> None:
    """
    Raises `ConfigurationError`, which names `location`, if a `type` in the config.json of an
    archive is the path of a class, or if a setting names code or lets weight files execute code.
    """
    for path, value in _settings(config):
        setting = path[-1]
        if setting == "type" and isinstance(value, str) and _is_class_path(value):
            raise _refusal(value, f"{location} ({'.'.join(path)} in config.json)")
        is_executed = setting in _EXECUTED and value
        if is_executed or (setting == "weights_only" and value is not True):
            raise ConfigurationError(
                f"{location} is refused: {'.'.join(path)} in config.json, {value!r}, may execute "
                f"code. Set it to {'null' if is_executed else 'true'} in --overrides."
            )


@contextmanager
def registered_types_only(location: str) -> Iterator[None]:
    """
    Within this context AllenNLP constructs registered types only. Otherwise it imports and calls
    the class or function that a `type` with a dot names.

    Files that these types load are not executed either. `torch.load` reads only tensors, whatever
    its arguments and the environment. transformers does not run code of models, and missing spaCy
    models are not installed; both raise an error.
    """

    def resolve_registered(cls: Type[Registrable], name: str) -> Any:
        if "." in name and name not in Registrable._registry[cls]:
            raise _refusal(name, location)
        return resolve.__func__(cls, name)

    def refuse_to_install(model: str) -> None:
        raise ConfigurationError(
            f"{location} is refused: its configuration names the spaCy model {model!r}, which is "
            "not installed, and installing it would execute code that the archive names. If you "
            "trust it, install it yourself with python -m spacy download."
        )

    with _LOCK:
        resolve = Registrable.__dict__["resolve_class_name"]
        with (
            _tensors_only(),
            patch.object(Registrable, "resolve_class_name", classmethod(resolve_registered)),
            # transformers asks the user before it runs code, and refuses when this time is up.
            patch.object(dynamic_module_utils, "TIME_OUT_REMOTE_CODE", 0),
            patch.object(allennlp_util, "spacy_download", refuse_to_install),
        ):
            yield


@contextmanager
def _tensors_only() -> Iterator[None]:
    """Within this context `torch.load` reads only tensors, even with `weights_only=False`."""
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    before = {name: os.environ.pop(name) for name in names if name in os.environ}
    os.environ[names[0]] = "1"
    try:
        yield
    finally:
        del os.environ[names[0]]
        os.environ.update(before)


def without_limits(
    config: Dict[str, Any], overrides: Union[str, Dict[str, Any]]
) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """
    Adds to the user's `overrides` those that lift limits (such as `max_instances`) of the readers
    and data loaders in `config`. Limits that the user sets stay. Also returns the lifted limits.
    """
    given = parse_overrides(overrides) if isinstance(overrides, str) else overrides
    validation = "validation_data_loader"
    # Evaluation uses the validation data loader if there is one.
    reading = ["dataset_reader", "validation_dataset_reader"]
    reading.append(validation if config.get(validation) else "data_loader")
    limits = {}
    for path, value in _settings({name: config[name] for name in reading if name in config}):
        prefixes = {".".join(path[:length]) for length in range(1, len(path) + 1)}
        is_limit = path[-1] in _LIMITS and value is not False and value != _LIMITS[path[-1]]
        if is_limit and prefixes.isdisjoint(given):
            limits[".".join(path)] = value
    lifted = {path: _LIMITS[path.rpartition(".")[2]] for path in limits}
    return {**given, **lifted}, limits


def _settings(config: Any, path: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], Any]]:
    """The path and value of every setting, at any depth."""
    if isinstance(config, dict):
        items = list(config.items())
    else:
        items = list(enumerate(config)) if isinstance(config, list) else []
    for key, value in items:
        yield (*path, str(key)), value
        yield from _settings(value, (*path, str(key)))


def _is_class_path(name: str) -> bool:
    return "." in name and not any(name in names for names in Registrable._registry.values())


def _refusal(name: str, location: str) -> ConfigurationError:
    return ConfigurationError(
        f"{location} is refused: expected the registered name of a type, found {name!r}, which "
        "would import and call code that the archive names. If you trust it, register the class, "
        "import its package with --include-package, and give the registered name in --overrides."
    )
