"""Dataclasses that are read from JSON; errors name the setting and the file."""

import math
from dataclasses import MISSING, field, fields
from typing import Any, Callable, NamedTuple, Type, TypeVar

from elmo_plugin.util.errors import ConfigurationError

Part = TypeVar("Part")


class Values(NamedTuple):
    """The values that a setting may have: described in messages, tested, and converted."""

    description: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value


def whole_number(minimum: int = 1, maximum: int = 1_000_000) -> Values:
    """A whole number within bounds. A larger one is a mistake that could use up all RAM."""
    return Values(
        f"a whole number of at least {minimum} and at most {maximum:,}",
        # Not `isinstance`, by which true is an `int`.
        lambda value: type(value) is int and minimum <= value <= maximum,
    )


def _is_filters(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
        and all(whole_number().accepts(number) for pair in value for number in pair)
    )


BOOLEAN = Values("true or false", lambda value: isinstance(value, bool))
# 0 stands for no bound.
BOUND = Values(
    "a number not below 0",
    lambda value: type(value) in (int, float) and 0 <= value < math.inf,
    lambda value: value or None,
)
ACTIVATION = Values("relu or tanh", lambda value: value in ("relu", "tanh"))
FILTERS = Values(
    "a list of [width, number] pairs of whole numbers above 0",
    lambda value: _is_filters(value) and len(value) > 0,
    lambda value: tuple((width, number) for width, number in value),
)


def setting(values: Values, default: Any = MISSING, name: str = "", hide: bool = False) -> Any:
    """A field of a dataclass. `name` is its name in the JSON, if it is another one."""
    return field(default=default, repr=not hide, metadata={"values": values, "name": name})


def read_part(part: Type[Part], source: Any, name: str, location: str) -> Part:
    """Reads a dataclass of `setting` fields from the JSON below `name`."""
    values = {
        each.name: read_setting(
            source,
            f"{name}.{each.metadata['name'] or each.name}",
            location,
            each.metadata["values"],
            each.default,
        )
        for each in fields(part)  # type: ignore[arg-type]
    }
    return part(**values)


def read_setting(
    source: Any,
    name: str,
    location: str,
    values: Values,
    default: Any = MISSING,
) -> Any:
    """
    The value of a dotted name, or `default` if missing or null. Raises `ConfigurationError` that
    begins with `location`.
    """
    value = source
    for part in name.split("."):
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    if default is not MISSING and (value is MISSING or value is None):
        return default
    if value is MISSING:
        raise ConfigurationError(
            f"{location}: `{name}` is missing; expected {values.description}, as in the file with "
            "which the biLM was trained."
        )
    if not values.accepts(value):
        raise ConfigurationError(
            f"{location}: expected {values.description} for `{name}`, found {value!r:.80}."
        )
    return values.convert(value)
