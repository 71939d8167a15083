"""The exception for wrong settings and files, and the messages of jsonnet."""

import re
from typing import Optional

_JSONNET = re.compile(r"(?:RUNTIME|STATIC) ERROR: ([^\n]*)(?:\n\s*([^\t\n]+))?")


class _Error(Exception):
    """
    The base that `elmo_plugin.plugin` replaces by AllenNLP's class: Python does not replace the
    base of a class whose base is `Exception` itself.
    """


class ConfigurationError(_Error):
    """
    A setting, or a file named by a setting, is wrong. The message explains how to fix it.

    Once `elmo_plugin.plugin` has been imported, a subclass of AllenNLP's class of this name.
    """


def jsonnet_message(message: str) -> Optional[str]:
    """What an error of jsonnet says, and where it arose, on one line; `None` for other errors."""
    found = _JSONNET.match(message)
    return found and found[1] + (f" ({found[2]})" if found[2] else "")
