"""Files that come with the package."""

from pathlib import Path

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
