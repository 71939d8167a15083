"""Files that come with the package."""

from pathlib import Path
from typing import Dict

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(path: str) -> Path:
    """
    The local path of a file or folder of this project, such as `pretrained/small/options.json`. A
    wheel has it inside the package, a checkout beside it.
    """
    inside = _PACKAGE / path
    return inside if inside.exists() else _PACKAGE.parent / path


def shipped_archives() -> Dict[str, Path]:
    """The trained task models that come with the package, by task."""
    found = sorted(shipped("pretrained/tasks").glob("*/model.tar.gz"))
    return {path.parent.name: path for path in found}
