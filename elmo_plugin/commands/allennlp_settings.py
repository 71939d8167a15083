"""
How AllenNLP reads the settings of an experiment and of `--overrides`, but with errors that name the
setting as it was written. `elmo_plugin.allennlp_patches` replaces AllenNLP's functions by these.
"""

import json
import os
import re
import sys
from difflib import get_close_matches
from functools import wraps
from os import PathLike
from pathlib import Path
from traceback import walk_tb
from typing import Any, Callable, Dict, Iterable, Optional, Type, Union

from allennlp.common import FromParams, Params, from_params
from allennlp.common.checks import ConfigurationError as AllenNlpError
from allennlp.common.params import parse_overrides, with_overrides
from allennlp.training.metric_tracker import MetricTracker

from elmo_plugin.console import explanation
from elmo_plugin.util.errors import ConfigurationError, excerpt, jsonnet_message

# The originals, which their replacements call.
_from_file = Params.from_file.__func__
_pop_choice = Params.pop_choice
_from_params = FromParams.from_params.__func__
_pop_and_construct_arg = from_params.pop_and_construct_arg
_combined_score = MetricTracker.combined_score

_COPY = "`elmo experiments FOLDER` copies those that come with elmo_plugin."
# What AllenNLP accepts for an argument of a type.
_KINDS = {
    int: ("a whole number", (int,)),
    float: ("a number", (int, float)),
    bool: ("true or false", (int,)),
    str: ("a string", (str, Path)),
}
# Arguments that nothing accepts below 1, though only some say so.
_SIZE = re.compile(
    r"(batch|hidden|input)_size|\w+_dim|max_tokens|"
    r"num_(epochs|filters|gradient_accumulation_steps|layers)"
)
_SEEDS = ("random_seed", "numpy_seed", "pytorch_seed")
# Errors of constructors that were given wrong values.
_WRONG_VALUE = (ArithmeticError, AssertionError, RuntimeError, TypeError, ValueError)
_LIBRARIES = {"allennlp", "elmo_plugin", "torch", "numpy", *sys.stdlib_module_names}


@wraps(_from_file)
def from_file(
    cls: Type[Params],
    params_file: Union[str, PathLike],
    params_overrides: Union[str, Dict[str, Any]] = "",
    ext_vars: Optional[Dict[str, str]] = None,
) -> Params:
    path = os.fspath(params_file)
    if "://" not in path and "!" not in path and not os.path.isfile(path):
        raise ConfigurationError(_no_experiment(Path(path)))
    try:
        params = _from_file(cls, path, ext_vars=ext_vars)
    except RuntimeError as error:
        sentence = jsonnet_message(str(error)) or str(error)
        sentence = sentence if sentence.startswith(path) else f"{path}: {sentence}"
        hint = f" {_COPY} Import them from there." if "open import" in sentence else ""
        raise ConfigurationError(f"{sentence}{hint}") from error
    return cls(_overridden(params, path, params_overrides)) if params_overrides else params


def _no_experiment(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder; expected the jsonnet file of an experiment in it."
    beside = [each.name for each in path.absolute().parent.glob("*.jsonnet")]
    like = get_close_matches(path.name, beside, n=1)
    hint = f"Did you mean {path.with_name(like[0])}?" if like else _COPY
    return f"No such experiment: {path}. {hint}"


def _overridden(params: Params, path: str, given: Union[str, Dict[str, Any]]) -> Dict[str, Any]:
    shown = given if isinstance(given, str) else json.dumps(given)
    try:
        overrides = parse_overrides(shown)
    except RuntimeError as error:
        overrides = jsonnet_message(str(error))
    if not isinstance(overrides, dict):
        reason = f" ({overrides})" if isinstance(overrides, str) else ""
        raise ConfigurationError(
            'Expected --overrides as a JSON object such as {"trainer.num_epochs": 3}, found '
            f"{excerpt(shown)}{reason}."
        )
    for name, value in overrides.items():
        if name.partition(".")[0] == "settings":
            raise ConfigurationError(_of_jsonnet(params, path, name, value))
    try:
        return with_overrides(params.as_dict(quiet=True), overrides)
    except ValueError as error:
        unused = [each for each in overrides if repr(each) in str(error)]
        like = _alike(params, unused)
        reason = f"{path} has no setting {', '.join(unused)}." if unused else str(error)
        hint = f" Did you mean {like}?" if like else ""
        raise ConfigurationError(f"--overrides: {reason}{hint}") from error


def _of_jsonnet(params: Params, path: str, name: str, value: Any) -> str:
    inner = value if name == "settings" and isinstance(value, dict) else {name: value}
    (*outer, last), content = name.split("."), json.dumps(value)
    change = "".join(f"{{ {each}+: " for each in outer) + f"{{ {last}: {content} }}"
    if name == "settings":
        change = f"{{ settings+: {content}"
    like = _alike(params, inner)
    if path.endswith("config.json"):
        # Of an archive or a run: there is no jsonnet to import.
        return f"--overrides: settings exist in jsonnet only. Override {like or 'the model'}."
    cure = f"Override {like}, or write" if like else "Write"
    return (
        f"--overrides: settings exist in jsonnet only. {cure} a file: (import '{path}') + "
        f"{change}{' }' * (len(outer) or 1)}"
    )


def _alike(params: Params, names: Iterable[str]) -> str:
    """The settings that are called like these, or similarly."""
    known = list(params.as_flat_dict())
    same = [n for n in known for each in names if n.split(".")[-1] == each.split(".")[-1]]
    like = same or [n for each in names for n in get_close_matches(each, known, n=1)]
    return " or ".join(like[:5])


@wraps(_pop_choice)
def pop_choice(params: Params, key: str, choices: Any, *args: Any, **kwargs: Any) -> Any:
    found = params.params.get(key)
    try:
        return _pop_choice(params, key, choices, *args, **kwargs)
    except (AllenNlpError, TypeError) as error:
        if found is None:
            raise
        like = get_close_matches(str(found), map(str, choices), n=1)
        hint = f" Did you mean {like[0]}?" if like else ""
        raise ConfigurationError(
            f"Expected `{params.history}{key}` to be one of {', '.join(map(str, choices))}, found "
            f"{found!r}.{hint} A type of your own needs --include-package."
        ) from error


def assert_empty(params: Params, class_name: str) -> None:
    if params.params:
        place = f"`{params.history[:-1]}`" if params.history else "The experiment"
        raise ConfigurationError(
            f"{place} ({class_name}) has no settings {', '.join(params.params)}. Correct or remove "
            "them."
        )


@wraps(_pop_and_construct_arg)
def pop_and_construct_arg(
    class_name: str,
    argument_name: str,
    annotation: Any,
    default: Any,
    params: Params,
    **extras: Any,
) -> Any:
    found: Any = params.params.get(argument_name)
    place = f"{params.history}{argument_name}"
    expected, types = _KINDS.get(annotation, ("", (object,)))
    if found is not None and not isinstance(found, types):
        raise _unexpected(place, expected, found)
    is_size = annotation is int and _SIZE.fullmatch(argument_name)
    if is_size and isinstance(found, int) and found < 1:
        raise _unexpected(place, "at least 1", found)
    try:
        return _pop_and_construct_arg(
            class_name, argument_name, annotation, default, params, **extras
        )
    except AllenNlpError as error:
        if str(error).startswith("Expected `type` "):
            # Of a type that is given by its name alone.
            raise ConfigurationError(str(error).replace("`type`", f"`{place}`", 1)) from error
        if not str(error).startswith(f"Failed to construct argument {argument_name} "):
            raise
        raise _unexpected(place, str(annotation).replace("typing.", ""), found) from error


def _unexpected(place: str, expected: str, found: Any) -> ConfigurationError:
    shown = excerpt(json.dumps(found, default=str))
    return ConfigurationError(f"Expected `{place}` to be {expected}, found {shown}.")


@wraps(_from_params)
def construct(cls: Type[Any], params: Any, *args: Any, **kwargs: Any) -> Any:
    place = getattr(params, "history", "").rstrip(".")
    try:
        return _from_params(cls, params, *args, **kwargs)
    except _WRONG_VALUE as error:
        # The errors of a user's own code are shown with their tracebacks.
        frames = [frame.f_globals["__name__"] for frame, _ in walk_tb(error.__traceback__)]
        is_theirs = {name.partition(".")[0] for name in frames} <= _LIBRARIES
        if not place or not is_theirs or explanation(error) is not None:
            raise
        raise ConfigurationError(
            f"`{place}`: {cls.__name__} cannot be built with these settings: {error}"
        ) from error


@wraps(_combined_score)
def combined_score(tracker: MetricTracker, metrics: Dict[str, float]) -> float:
    for _, name in tracker.tracked_metrics:
        if name not in metrics:
            raise ConfigurationError(
                f"Expected `trainer.validation_metric` among {', '.join(metrics)}, found {name}."
            )
    return _combined_score(tracker, metrics)


def check_experiment(experiment: Dict[str, Any]) -> None:
    """Raises `ConfigurationError` for seeds, paths and metrics that would be wrong later."""
    for name in _SEEDS:
        seed = experiment.get(name)
        if seed is not None and (type(seed) is not int or not 0 <= seed < 2**32):
            raise _unexpected(name, "a whole number from 0 to 4294967295", seed)
    for name in ("train_data_path", "validation_data_path"):
        if name in experiment and not isinstance(experiment[name], (str, list, dict)):
            raise _unexpected(name, "a path", experiment[name])
    trainer = experiment.get("trainer")
    metrics = trainer.get("validation_metric", "-loss") if isinstance(trainer, dict) else "-loss"
    for metric in metrics if isinstance(metrics, list) else [metrics]:
        if not str(metric).startswith(("+", "-")):
            raise _unexpected("trainer.validation_metric", "a name after + or -", metric)


def with_package(import_package: Callable[[str], None], package: str) -> None:
    """Imports the package of an --include-package."""
    try:
        import_package(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        raise ConfigurationError(
            f"--include-package {package}: no such package is installed, in PYTHONPATH or in "
            f"{os.getcwd()}."
        ) from error
