import enum
import logging
import re
import types
from typing import Any, Dict, Iterator, Tuple

import numpy
import torch
from allennlp.common import Registrable
from allennlp.models import Model
from allennlp.training.metrics import Metric

from elmo_plugin.util.errors import ConfigurationError

_VALUES = (bool, int, float, str, set, type(None), torch.Tensor)
_CONSTANTS = (
    bytes,
    enum.Enum,
    frozenset,
    logging.Logger,
    re.Pattern,
    torch.device,
    torch.dtype,
    types.ModuleType,
)

# Any other value is stored as a dictionary: `_CLASS` is its class or one of the two names below,
# `_PARTS` its content.
_CLASS, _PARTS = "elmo-class", "elmo-parts"
_ARRAY, _LEFT_OUT = "numpy.ndarray", "left out"


def metric_states(model: Model) -> Dict[str, Any]:
    """
    The attributes of each metric of a model, by the metric's path in the model. Attributes that are
    plain objects are stored with their attributes. Functions, modules, constants, and objects that
    AllenNLP builds from a configuration, such as a vocabulary, are left out. `torch.load` can read
    the result with `weights_only`.

    # Raises

    `ConfigurationError`
        If an attribute has a type that can be neither stored nor left out.
    """
    return {path: metric_state(metric) for path, metric in _metrics(model)}


def load_metric_states(model: Model, states: Dict[str, Any]) -> None:
    """
    Restores `metric_states`.

    # Raises

    `ConfigurationError`
        If the checkpoint lacks a metric, or if a stored object is missing in a metric or has
        another class there.
    """
    for path, metric in _metrics(model):
        if path not in states:
            raise ConfigurationError(
                f"Expected the state of the metric {path} in the checkpoint, found only "
                f"{', '.join(sorted(states)) or 'none'}. Recover with the model that wrote it."
            )
        load_metric_state(metric, states[path])


def metric_state(metric: Metric) -> Dict[str, Any]:
    """The state of one metric, see `metric_states`."""
    return _attributes(metric, type(metric).__name__)


def load_metric_state(metric: Metric, state: Dict[str, Any]) -> None:
    """Restores `metric_state`."""
    _restored(metric, state, type(metric).__name__)


def _metrics(model: Model) -> Iterator[Tuple[str, Metric]]:
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            yield from _metrics_in(f"{name}.{attribute}", value)


def _metrics_in(path: str, value: Any) -> Iterator[Tuple[str, Metric]]:
    if isinstance(value, Metric):
        yield path, value
    elif isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in items:
            yield from _metrics_in(f"{path}.{name}", part)


def _is_left_out(value: Any) -> bool:
    if isinstance(value, (Metric, *_VALUES, dict, list, tuple)):
        return False
    return isinstance(value, (*_CONSTANTS, Registrable, torch.nn.Module)) or callable(value)


def _attributes(value: Any, path: str) -> Dict[str, Any]:
    return {
        name: _state(part, f"{path}.{name}")
        for name, part in vars(value).items()
        if not _is_left_out(part)
    }


def _state(value: Any, path: str) -> Any:
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, _VALUES):
        return value
    if _is_left_out(value):
        return {_CLASS: _LEFT_OUT}
    if isinstance(value, numpy.ndarray):
        return {_CLASS: _ARRAY, _PARTS: _tensor(value, path)}
    if isinstance(value, dict):
        parts: Any = {name: _state(part, f"{path}[{name!r}]") for name, part in value.items()}
    elif isinstance(value, (list, tuple)):
        states = (_state(part, f"{path}[{number}]") for number, part in enumerate(value))
        parts = list(states) if isinstance(value, list) else tuple(states)
    elif hasattr(value, "__dict__"):
        parts = _attributes(value, path)
    else:
        raise _not_storable(value, path)
    if type(value) in (dict, list, tuple):
        return parts
    return {_CLASS: type(value).__qualname__, _PARTS: parts}


def _tensor(array: numpy.ndarray, path: str) -> torch.Tensor:
    try:
        return torch.tensor(array.copy())
    except (TypeError, ValueError) as error:
        raise _not_storable(array, path) from error


def _not_storable(value: Any, path: str) -> ConfigurationError:
    kind = f"array of {value.dtype}" if isinstance(value, numpy.ndarray) else type(value).__name__
    return ConfigurationError(
        f"Metric {path}: expected numbers, strings, tensors, arrays of numbers, or lists, tuples, "
        f"sets, dictionaries and plain objects of them, found {kind}, which a checkpoint cannot "
        "store. Change the metric, or train with the trainer gradient_descent."
    )


def _restored(value: Any, state: Any, path: str) -> Any:
    """Restores `value`, in place if it is mutable, so that it keeps its class."""
    if isinstance(state, dict) and _CLASS in state:
        kind, state = state[_CLASS], state.get(_PARTS)
        if kind == _LEFT_OUT:
            return value
        if kind == _ARRAY:
            return state.cpu().numpy()
        if type(value).__qualname__ != kind:
            raise ConfigurationError(
                f"Metric {path}: expected a {kind} to restore from the checkpoint, found "
                f"{type(value).__name__}. Create it in the metric's constructor."
            )
    if isinstance(state, (list, tuple)):
        before = list(value) if isinstance(value, (list, tuple)) else []
        before += [None] * (len(state) - len(before))
        triples = zip(before, state, (f"{path}[{number}]" for number in range(len(state))))
        parts = [_restored(*triple) for triple in triples]
        kind = type(value) if isinstance(value, (list, tuple)) else type(state)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if not isinstance(state, dict):
        return state
    if isinstance(value, (type(None), *_VALUES, list, tuple)):
        value = {}
    if isinstance(value, dict):
        restored = {
            name: _restored(_entry(value, name), part, f"{path}[{name!r}]")
            for name, part in state.items()
        }
        value.clear()
        value.update(restored)
        return value
    for name, part in state.items():
        setattr(value, name, _restored(getattr(value, name, None), part, f"{path}.{name}"))
    return value


def _entry(mapping: Dict[Any, Any], name: Any) -> Any:
    make = getattr(mapping, "default_factory", None)
    return mapping[name] if name in mapping or make else None
