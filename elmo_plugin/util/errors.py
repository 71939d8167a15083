"""The errors for wrong settings and input, interruptions, and the messages of jsonnet."""

import json
import re
from typing import Any, Collection, Optional

_JSONNET = re.compile(r"(?:RUNTIME|STATIC) ERROR: ([^\n]*)(?:\n\s*([^\t\n]+))?")

#: The exit code of a command after Ctrl-C, as shells have it.
INTERRUPTED = 130


class _Error(Exception):
    """
    The base that `elmo_plugin.allennlp_patches` replaces by AllenNLP's class: Python does not
    replace the base of a class whose base is `Exception` itself.
    """


class ConfigurationError(_Error):
    """
    A setting, or a file named by a setting, is wrong. The message explains how to fix it.

    Once `elmo_plugin.plugin` has been imported, a subclass of AllenNLP's class of this name.
    """


def is_interruption(error: BaseException) -> bool:
    """Whether an exception is an interruption, or what a library has made of one."""
    names = {kind.__name__ for kind in type(error).__mro__}
    # By name, because `SigTermReceived` is AllenNLP's.
    if names & {"KeyboardInterrupt", "SigTermReceived"}:
        return True
    return error.__context__ is not None and is_interruption(error.__context__)


def excerpt(text: str) -> str:
    """At most 80 characters of a text, for error messages."""
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:77]}..."


def unexpected(location: object, expected: str, found: Any, advice: str = "") -> ValueError:
    """
    The error of all readers of files.

    # Parameters

    location : `object`
        `file:line`, or empty if the caller adds it.
    expected, advice : `str`
        What should stand there, and what the user should do.
    found : `Any`
        A string is shown as it is, other values as JSON.
    """
    shown = found if isinstance(found, str) else excerpt(json.dumps(found, ensure_ascii=False))
    sentence = f"{location}: " if location else ""
    sentence += f"expected {expected}, found {shown}"
    return ValueError(f"{sentence}. {advice}" if advice else sentence)


def expect(is_right: Any, location: object, expected: str, found: Any, advice: str = "") -> None:
    """Raises the error of `unexpected` unless something `is_right`."""
    if not is_right:
        raise unexpected(location, expected, found, advice)


def check_one_of(choices: Collection[str], **settings: Any) -> None:
    """Raises `ConfigurationError` if a setting is none of the `choices`."""
    for name, value in settings.items():
        # A tuple: a value that cannot be hashed is none of them.
        if value not in tuple(choices):
            raise ConfigurationError(
                f"Expected `{name}` to be one of {', '.join(choices)}, found {value!r}."
            )


def check_least(least: int, **settings: float) -> None:
    """Raises `ConfigurationError` if a setting is below `least`."""
    for name, value in settings.items():
        if not value >= least:
            raise ConfigurationError(f"Expected `{name}` of at least {least}, found {value}.")


def check_dropout(**settings: float) -> None:
    """Raises `ConfigurationError` if a rate of dropout is not from 0 to below 1."""
    for name, rate in settings.items():
        if not 0.0 <= rate < 1.0:
            raise ConfigurationError(f"Expected `{name}` from 0 to below 1, found {rate}.")


def check_no_settings(owner: Any, unknown: Collection[str]) -> None:
    """
    Raises `ConfigurationError` if there are `unknown` settings of an object: AllenNLP does not
    check those of a class whose constructor takes `**kwargs`.
    """
    if unknown:
        raise ConfigurationError(
            f"{type(owner).__name__} has no settings {sorted(unknown)}. Correct or remove them."
        )


def jsonnet_message(message: str) -> Optional[str]:
    """What an error of jsonnet says, and where it arose, on one line; `None` for other errors."""
    found = _JSONNET.match(message)
    return found and found[1] + (f" ({found[2]})" if found[2] else "")
