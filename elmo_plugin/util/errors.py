"""
Errors for wrong settings and input and for packages that are missing; interruptions; messages of
jsonnet.
"""

import json
import re
from importlib import import_module
from typing import Any, Collection, Optional, Type

# The place of a check of settings says nothing about the wrong one.
_JSONNET = re.compile(
    r"(?:RUNTIME|STATIC) ERROR: ([^\n]*)(?:\n\s*(?!\S*lib/settings\.libsonnet)([^\t\n]+))?"
)

#: Exit code after Ctrl-C, as in shells.
INTERRUPTED = 130


class _Error(Exception):
    """Replaced by AllenNLP's class in `allennlp_patches`. Python cannot replace `Exception`."""


class ConfigurationError(_Error):
    """
    A setting, or a file that a setting names, is wrong. The message says how to fix it. Importing
    `elmo_plugin.plugin` makes this a subclass of AllenNLP's `ConfigurationError`.
    """


def is_interruption(error: BaseException) -> bool:
    """Whether an error is an interruption, or was raised while one was handled."""
    names = {kind.__name__ for kind in type(error).__mro__}
    # By name, because AllenNLP defines `SigTermReceived`.
    if names & {"KeyboardInterrupt", "SigTermReceived"}:
        return True
    return error.__context__ is not None and is_interruption(error.__context__)


def excerpt(text: str) -> str:
    """The text, cut to 80 characters for an error message."""
    text = text.strip()
    return text if len(text) <= 80 else f"{text[:77]}..."


def unexpected(location: object, expected: str, found: Any, advice: str = "") -> ValueError:
    """
    The error of all readers of files: `LOCATION: expected …, found …. ADVICE`. `location` is
    `file:line`, or empty if the caller adds it. `found` is shown as JSON if it is not a string.
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
        # A tuple, because a value may not be hashable.
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
    """Raises `ConfigurationError` if a rate is not from 0 to below 1."""
    for name, rate in settings.items():
        if not 0.0 <= rate < 1.0:
            raise ConfigurationError(f"Expected `{name}` from 0 to below 1, found {rate}.")


def check_no_settings(owner: Any, unknown: Collection[str]) -> None:
    """`ConfigurationError` for `unknown` settings. AllenNLP checks none if there is `**kwargs`."""
    if unknown:
        raise ConfigurationError(
            f"{type(owner).__name__} has no settings {sorted(unknown)}. Correct or remove them."
        )


def optional_package(
    name: str, purpose: str, install: str = "", error: Type[Exception] = ImportError
) -> Any:
    """
    Imports a module, or raises `error`. Its message names the package, the `purpose` that needs it,
    and what to `install` with pip (default: the package); or why an installed one cannot be
    imported.
    """
    try:
        return import_module(name)
    except ImportError as cause:
        package = name.partition(".")[0]
        missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
        reason = f"pip install {install or package}."
        if (missing or "").partition(".")[0] != package:
            reason = f"it is installed, but cannot be imported ({cause}). Install it again."
        raise error(f"{purpose} needs the package {package}: {reason}") from cause


def jsonnet_message(message: str) -> Optional[str]:
    """Message and place of a jsonnet error, on one line; `None` for other errors."""
    found = _JSONNET.match(message)
    return found and found[1] + (f" ({found[2]})" if found[2] else "")
