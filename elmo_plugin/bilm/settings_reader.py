"""Looks up settings in nested JSON by dotted names, and checks them."""

import math
from dataclasses import field, fields
from typing import Any, Callable, NamedTuple, Type, TypeVar

from elmo_plugin.bilm.vocabulary_file import SPECIALS
from elmo_plugin.util.errors import ConfigurationError

_REQUIRED, _MISSING = object(), object()

Part = TypeVar("Part")


class Kind(NamedTuple):
    """The values that a setting may have: described in messages, tested, and converted."""

    description: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value


def whole_number(minimum: int = 1, maximum: int = 1_000_000) -> Kind:
    """A whole number within bounds. A larger one is a mistake that could use up all RAM."""
    return Kind(
        f"a whole number of at least {minimum} and at most {maximum:,}",
        # Not `isinstance`, by which true is an `int`.
        lambda value: type(value) is int and minimum <= value <= maximum,
    )


def one_of(*choices: str) -> Kind:
    return Kind(f"one of {', '.join(choices)}", lambda value: value in choices)


def _is_filters(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
        and all(whole_number().accepts(number) for pair in value for number in pair)
    )


def _is_vocabulary(value: Any) -> bool:
    return (
        isinstance(value, list)
        and tuple(value[: len(SPECIALS)]) == SPECIALS
        and all(isinstance(word, str) for word in value)
        and len(set(value)) == len(value)
    )


BOOLEAN = Kind("true or false", lambda value: isinstance(value, bool))
# 0 stands for no bound.
BOUND = Kind(
    "a number not below 0",
    lambda value: type(value) in (int, float) and 0 <= value < math.inf,
    lambda value: value or None,
)
FILTERS = Kind(
    "a list of [width, number] pairs of whole numbers above 0",
    _is_filters,
    lambda value: tuple((width, number) for width, number in value),
)
WORDS = Kind(
    f"a list of different words that begins with {', '.join(SPECIALS)}", _is_vocabulary, tuple
)


def setting(kind: Kind, default: Any = _REQUIRED, name: str = "") -> Any:
    """A field of a dataclass. `name` is its name in the JSON, if it is another one."""
    return field(metadata={"kind": kind, "default": default, "name": name})


def read_part(kind: Type[Part], source: Any, name: str, location: str) -> Part:
    """Reads a dataclass of `setting` fields from the JSON below `name`, see `read_setting`."""
    values = {
        each.name: read_setting(
            source,
            f"{name}.{each.metadata['name'] or each.name}",
            location,
            each.metadata["kind"],
            each.metadata["default"],
        )
        for each in fields(kind)  # type: ignore[arg-type]
    }
    return kind(**values)


def read_setting(
    source: Any, name: str, location: str, kind: Kind, default: Any = _REQUIRED
) -> Any:
    """The value of a dotted name, or `default` if missing or null. Errors begin with `location`."""
    value = source
    for part in name.split("."):
        value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
    if default is not _REQUIRED and (value is _MISSING or value is None):
        return default
    if value is _MISSING:
        raise ConfigurationError(
            f"{location}: `{name}` is missing; expected {kind.description}, as in the options.json "
            "of bilm-tf with which the biLM was trained."
        )
    if not kind.accepts(value):
        raise ConfigurationError(
            f"{location}: expected {kind.description} for `{name}`, found {value!r:.80}."
        )
    return kind.convert(value)
