import math
from typing import Any, Callable, Dict, NamedTuple, Optional

from elmo_plugin.bilm.vocabulary_file import SPECIALS
from elmo_plugin.util.errors import ConfigurationError

_REQUIRED = object()


class Kind(NamedTuple):
    """The values that a setting may have: their description in error messages, and a test."""

    description: str
    accepts: Callable[[Any], bool]


def whole_number(minimum: int = 1, maximum: Optional[int] = None) -> Kind:
    """Accepts a whole number from `minimum` to `maximum`."""
    upper = "" if maximum is None else f" and at most {maximum:,}"
    return Kind(
        f"a whole number of at least {minimum}{upper}",
        # Not `isinstance`, by which true is an `int`.
        lambda value: (
            type(value) is int and minimum <= value <= (value if maximum is None else maximum)
        ),
    )


def one_of(*choices: str) -> Kind:
    """Accepts one of several words."""
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
BOUND = Kind(
    "a number not below 0", lambda value: type(value) in (int, float) and 0 <= value < math.inf
)
FILTERS = Kind("a list of [width, number] pairs of whole numbers above 0", _is_filters)
WORDS = Kind(f"a list of different words that begins with {', '.join(SPECIALS)}", _is_vocabulary)


class SettingsReader:
    """
    Looks up dotted names in nested JSON and checks the values.

    # Parameters

    source : `Dict[str, Any]`
        The JSON.
    location : `str`
        Its name in error messages.
    """

    def __init__(self, source: Dict[str, Any], location: str) -> None:
        self.source = source
        self.location = location

    def __call__(self, name: str, kind: Kind, default: Any = _REQUIRED) -> Any:
        """The value of a setting; `default` if it is missing or `null`."""
        value: Any = self.source
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                if default is _REQUIRED:
                    raise ConfigurationError(
                        f"{self.location}: `{name}` is missing; expected {kind.description}, as in "
                        "the options.json of bilm-tf with which the biLM was trained."
                    )
                return default
            value = value[part]
        if value is None and default is not _REQUIRED:
            return default
        if not kind.accepts(value):
            raise ConfigurationError(
                f"{self.location}: expected {kind.description} for `{name}`, found {value!r:.80}."
            )
        return value
