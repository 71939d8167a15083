"""Packages that need not be installed."""

from importlib import import_module
from typing import Any, Type


def optional_package(
    name: str, purpose: str, install: str = "", error: Type[Exception] = ImportError
) -> Any:
    """
    Imports a module. If its package is missing, raises `error` with its name, the `purpose` that
    needs it, and what to `install` with pip, by default the package.
    """
    try:
        return import_module(name)
    except ImportError as cause:
        package = name.partition(".")[0]
        message = f"{purpose} needs the package {package}: pip install {install or package}."
        raise error(message) from cause
