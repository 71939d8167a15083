from importlib import import_module
from typing import Any, Type


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
