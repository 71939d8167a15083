"""The exception for wrong settings and files, interruptions, and the messages of jsonnet."""

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
