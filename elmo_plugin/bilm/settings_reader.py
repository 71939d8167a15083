import math
from typing import Any, Dict, Optional, Tuple

from elmo_plugin.bilm.vocabulary_file import SPECIALS
from elmo_plugin.util.errors import ConfigurationError


class SettingsReader:
    """
    Looks dotted names up in nested JSON and says which setting is missing or wrong. `null` counts
    as missing where there is a default.

    # Parameters

    source : `Dict[str, Any]`
        The JSON.
    place : `str`
        What error messages call it.
    """

    def __init__(self, source: Dict[str, Any], place: str) -> None:
        self.source = source
        self.place = place

    def __call__(self, name: str, **default: Any) -> Any:
        value: Any = self.source
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                if default:
                    return default["default"]
                raise ConfigurationError(
                    f"{self.place}: `{name}` is missing. Expected an options.json as bilm-tf "
                    "and `elmo_plugin` write them."
                )
            value = value[part]
        return default["default"] if value is None and default else value

    def whole(self, name: str, least: int = 1, most: Optional[int] = None, **default: Any) -> int:
        """A whole number from `least` to `most`."""
        value = self(name, **default)
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or value < least:
            raise ConfigurationError(
                f"{self.place}: expected a whole number of at least {least} for `{name}`, found "
                f"{value!r}."
            )
        if most is not None and value > most:
            raise ConfigurationError(
                f"{self.place}: expected at most {most:,} for `{name}`, found {value:,}. No biLM "
                "is that large; correct the setting."
            )
        return value

    def bound(self, name: str) -> Optional[float]:
        """A finite number above 0; `None` for 0, null, and a setting that is missing."""
        value = self(name, default=None)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):
            raise ConfigurationError(
                f"{self.place}: expected a number not below 0 for `{name}`, found {value!r}."
            )
        return value or None

    def boolean(self, name: str, default: bool) -> bool:
        """`true` or `false`."""
        value = self(name, default=default)
        if not isinstance(value, bool):
            raise ConfigurationError(
                f"{self.place}: expected true or false for `{name}`, found {value!r}."
            )
        return value

    def filters(self, name: str) -> Tuple[Tuple[int, int], ...]:
        """Pairs of width and number, at least one."""
        value = self(name)
        pairs = value if isinstance(value, (list, tuple)) else []
        if not pairs or not all(_is_pair(pair) for pair in pairs):
            raise ConfigurationError(
                f"{self.place}: expected a list of [width, number], whole numbers above 0, for "
                f"`{name}`, found {value!r}."
            )
        return tuple((width, number) for width, number in pairs)

    def one_of(self, name: str, choices: Tuple[str, ...], default: str) -> str:
        """One of several words."""
        value = self(name, default=default)
        if value not in choices:
            raise ConfigurationError(
                f"{self.place}: expected one of {', '.join(choices)} for `{name}`, found {value!r}."
            )
        return value

    def words(self, name: str) -> Optional[Tuple[str, ...]]:
        """A vocabulary; `None` where there is none."""
        value = self(name, default=None)
        if value is None:
            return None
        if not isinstance(value, list) or tuple(value[: len(SPECIALS)]) != SPECIALS:
            raise ConfigurationError(
                f"{self.place}: expected a list of words that begins with {', '.join(SPECIALS)} "
                f"for `{name}`, found {str(value)[:80]}."
            )
        expected = self.whole("n_tokens_vocab", default=len(value))
        if len(value) != expected:
            raise ConfigurationError(
                f"{self.place}: expected as many words as `n_tokens_vocab` says, {expected}, found "
                f"{len(value)}. Take the vocabulary with which the biLM was trained."
            )
        return tuple(value)


def _is_pair(pair: Any) -> bool:
    # `type`, not `isinstance`: true counts as 1 there.
    is_pair = isinstance(pair, (list, tuple)) and len(pair) == 2
    return is_pair and all(type(number) is int and number > 0 for number in pair)
