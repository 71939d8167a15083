"""Studies as jsonnet."""

import json
import os
from typing import Any, Dict

from elmo_plugin.util.errors import ConfigurationError, jsonnet_message


def render(path: str) -> Dict[str, Any]:
    """
    The content of a jsonnet file, with the environment as external variables.

    # Raises

    `ConfigurationError`
        If there is no such file, or jsonnet fails.
    """
    import _jsonnet

    if not os.path.isfile(path):
        raise ConfigurationError(f"{path}: no such file. Name the jsonnet file of a study.")
    # The bindings fail for variables that are not UTF-8, even if nothing reads them.
    variables = {name: value for name, value in os.environ.items() if _is_utf8(name + value)}
    try:
        return json.loads(_jsonnet.evaluate_file(path, ext_vars=variables))
    except RuntimeError as error:
        message = str(error).strip()
        raise ConfigurationError(f"{path}: {jsonnet_message(message) or message}") from error


def _is_utf8(text: str) -> bool:
    """Whether text that Python decoded from the environment was UTF-8."""
    return not any("\udc80" <= character <= "\udcff" for character in text)
