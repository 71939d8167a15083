"""What the config.json of an archive may name, and what of it limits how much is read."""

import os
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, Tuple, Type, Union

from allennlp.common import util as allennlp_util
from allennlp.common.params import parse_overrides
from allennlp.common.registrable import Registrable
from transformers import dynamic_module_utils

from elmo_plugin.util.errors import ConfigurationError

_READERS = ("dataset_reader", "validation_dataset_reader")
_LIMITS = ("max_instances", "batches_per_epoch", "drop_last")
# Code of a model of transformers; folders and scripts of scorers of AllenNLP, which runs them.
_EXECUTED = ("trust_remote_code", "evalb_directory_path", "srl_eval_path")


def check_config(config: Dict[str, Any], place: str) -> None:
    """
    # Parameters

    config : `Dict[str, Any]`
        The configuration of an archive.
    place : `str`
        What error messages call the archive.

    # Raises

    `ConfigurationError`
        If a `type` in it is the path of a class instead of a registered name, if it says what is
        to be executed, or if it allows weight files to be executed.
    """
    for path, value in _settings(config):
        setting = path[-1]
        if setting == "type" and isinstance(value, str) and _is_class_path(value):
            raise _refusal(value, f"{place} ({'.'.join(path)} in config.json)")
        if setting in _EXECUTED and value:
            raise ConfigurationError(
                f"{place} is refused: {'.'.join(path)} in config.json, {value!r}, would be "
                "executed. If you do not need it, set it to null in --overrides."
            )
        if setting == "weights_only" and value is not True:
            raise ConfigurationError(
                f"{place} is refused: {'.'.join(path)} in config.json, {value!r}, would let a file "
                "of weights execute code. Set it to true in --overrides."
            )


@contextmanager
def registered_types_only(place: str) -> Iterator[None]:
    """
    Within it AllenNLP constructs registered types only. Otherwise it takes a `type` with a dot
    for the path of a class or a function, imports its module and calls it.

    What these types load is not executed either: `torch.load` reads tensors only, whatever its
    caller and the environment say, transformers does not ask whether to run a model's code, and a
    missing model of spaCy is not installed.

    # Parameters

    place : `str`
        What error messages call the archive.

    # Raises

    `ConfigurationError`
        If something else is to be constructed, or a model of spaCy is missing.
    """
    resolve = Registrable.__dict__["resolve_class_name"]

    def resolve_registered(cls: Type[Registrable], name: str) -> Any:
        if "." in name and name not in Registrable._registry[cls]:
            raise _refusal(name, place)
        return resolve.__func__(cls, name)

    def refuse_to_install(model: str) -> None:
        raise ConfigurationError(
            f"{place} is refused: its configuration names the spaCy model {model!r}, which is not "
            "installed, and installing it would execute what an archive chooses. If you trust it, "
            "install it yourself with python -m spacy download."
        )

    with ExitStack() as replaced:
        replaced.enter_context(_tensors_only())
        for owner, name, value in (
            (Registrable, "resolve_class_name", classmethod(resolve_registered)),
            # With no time for an answer, the code is refused.
            (dynamic_module_utils, "TIME_OUT_REMOTE_CODE", 0),
            (allennlp_util, "spacy_download", refuse_to_install),
        ):
            replaced.callback(setattr, owner, name, vars(owner)[name])
            setattr(owner, name, value)
        yield


@contextmanager
def _tensors_only() -> Iterator[None]:
    """Within it `torch.load` unpickles nothing but tensors, even if called to do otherwise."""
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
    # Parameters

    config : `Dict[str, Any]`
        The configuration of an archive.
    overrides : `Union[str, Dict[str, Any]]`
        What the user wants to be different, in AllenNLP's form.

    # Returns

    `Tuple[Dict[str, Any], Dict[str, Any]]`
        The overrides, with others that lift what keeps readers and data loaders of the archive
        from reading a whole file, unless the user's decide about it; and the limits lifted.
    """
    given = parse_overrides(overrides) if isinstance(overrides, str) else overrides
    validation = "validation_data_loader"
    # Of two data loaders, evaluation takes that one.
    reading = (*_READERS, validation if config.get(validation) else "data_loader")
    limits = {}
    for path, value in _settings({name: config[name] for name in reading if name in config}):
        prefixes = {".".join(path[:length]) for length in range(1, len(path) + 1)}
        is_limit = path[-1] in _LIMITS and value is not None and value is not False
        if is_limit and prefixes.isdisjoint(given):
            limits[".".join(path)] = value
    return {**given, **dict.fromkeys(limits)}, limits


def _settings(config: Any, path: Tuple[str, ...] = ()) -> Iterator[Tuple[Tuple[str, ...], Any]]:
    """Every value at any depth, after the keys that lead to it."""
    if isinstance(config, dict):
        items = list(config.items())
    else:
        items = list(enumerate(config)) if isinstance(config, list) else []
    for key, value in items:
        yield (*path, str(key)), value
        yield from _settings(value, (*path, str(key)))


def _is_class_path(name: str) -> bool:
    return "." in name and not any(name in names for names in Registrable._registry.values())


def _refusal(name: str, place: str) -> ConfigurationError:
    return ConfigurationError(
        f"{place} is refused: expected the registered name of a type, found {name!r}, which would "
        "import and call what an archive chooses. If you trust it, register the class, import its "
        "package with --include-package, and give the registered name in --overrides."
    )
