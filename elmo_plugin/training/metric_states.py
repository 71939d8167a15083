from typing import Any, Dict, Iterator, Tuple

import torch
from allennlp.common import Registrable
from allennlp.models import Model
from allennlp.training.metrics import Metric

__all__ = ["load_metric_states", "metric_states"]

_VALUES = (bool, int, float, str, set, type(None), torch.Tensor)


def metric_states(model: Model) -> Dict[str, Any]:
    """
    What each metric of a model has counted so far, by its place in the model: all attributes of
    the metric, and of plain objects that it consists of. Modules, and what else AllenNLP builds
    from a configuration, such as a vocabulary, are left out. Holds only what `torch.load` reads
    with `weights_only`.
    """
    return {place: _attributes(metric) for place, metric in _metrics(model)}


def load_metric_states(model: Model, states: Dict[str, Any]) -> None:
    """Undoes `metric_states`."""
    for place, metric in _metrics(model):
        _restored(metric, states[place])


def _metrics(model: Model) -> Iterator[Tuple[str, Metric]]:
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            yield from _metrics_in(f"{name}.{attribute}", value)


def _metrics_in(place: str, value: Any) -> Iterator[Tuple[str, Metric]]:
    if isinstance(value, Metric):
        yield place, value
    elif isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in items:
            yield from _metrics_in(f"{place}.{name}", part)


def _attributes(value: Any) -> Dict[str, Any]:
    return {name: _state(part) for name, part in vars(value).items() if _is_counted(part)}


def _is_counted(value: Any) -> bool:
    if isinstance(value, (*_VALUES, dict, list, tuple, Metric)):
        return True
    is_part = isinstance(value, (Registrable, torch.nn.Module)) or callable(value)
    return hasattr(value, "__dict__") and not is_part


def _state(value: Any) -> Any:
    if isinstance(value, _VALUES):
        return value
    if isinstance(value, dict):
        return {name: _state(part) for name, part in value.items() if _is_counted(part)}
    if isinstance(value, (list, tuple)):
        return [_state(part) for part in value if _is_counted(part)]
    return _attributes(value)


def _restored(value: Any, state: Any) -> Any:
    """What `value` becomes: itself where it can be changed, so that it keeps its class."""
    if isinstance(value, dict):
        parts = {name: _restored(value.get(name), part) for name, part in state.items()}
        value.clear()
        value.update(parts)
        return value
    if isinstance(value, (list, tuple)):
        before = [*value, *[None] * len(state)]
        return type(value)(_restored(*pair) for pair in zip(before, state))
    if isinstance(value, _VALUES):
        return state
    for name, part in state.items():
        setattr(value, name, _restored(getattr(value, name), part))
    return value
