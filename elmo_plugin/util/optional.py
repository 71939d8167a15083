"""Packages that need not be installed."""

from importlib import import_module
from typing import Any, Type


def optional_package(
    name: str, purpose: str, install: str = "", error: Type[Exception] = ImportError
) -> Any:
    """
    Imports a module. If its package is missing, raises `error` with its name, the `purpose` that
    needs it, and what to `install` with pip, by default the package; if it is installed but cannot
    be imported, with the reason.
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
