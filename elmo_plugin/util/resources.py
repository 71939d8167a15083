"""Files that come with the package."""

from pathlib import Path
from typing import Dict

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(path: str) -> Path:
    """
    Where a file or folder is that comes with the package: inside it when it was installed from a
    wheel, beside it in a checkout.

    # Parameters

    path : `str`
        Its path in the checkout: `pretrained/small/options.json`.
    """
    inside = _PACKAGE / path
    return inside if inside.exists() else _PACKAGE.parent / path


def shipped_archives() -> Dict[str, Path]:
    """The trained models of tasks that come with the package, by the name of the task."""
    found = sorted(shipped("pretrained/tasks").glob("*/model.tar.gz"))
    return {path.parent.name: path for path in found}
