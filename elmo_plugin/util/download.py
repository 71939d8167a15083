"""Downloads with nothing but the standard library."""

import hashlib
import re
import sys
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Optional
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from filelock import FileLock

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress

_BLOCK = 1 << 20
# Without an answer for so many seconds, the connection counts as broken.
_TIMEOUT = 60
# Of a file that does not exist. S3 answers 403 if its folder may not be listed.
_MISSING = (403, 404, 410)


def download(url: str, folder: Path, owner: Optional[str] = None) -> Path:
    """
    The local copy of a file on a web server (`http://` or `https://`), below `folder`. It is
    fetched once, with progress on standard error, into `FILE.unfinished`, which is renamed when it
    is complete. Each URL has a folder of its own; files with the same `owner`, the URL of the file
    that they belong to, are beside each other.

    Raises `FileNotFoundError` if there is no such file or the server does not allow reading it, and
    `ConfigurationError` if the server cannot be reached or breaks off; the next call starts again.
    """
    digest = hashlib.sha256((owner or url).encode())
    try:
        name = urlsplit(url).path.rpartition("/")[2]
    except ValueError as error:
        raise _failed(url, error) from error
    name = re.sub(r"[^\w.-]", "_", unquote(name)).lstrip(".") or "index"
    path = folder / digest.hexdigest()[:16] / name
    if not path.exists():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(
                f"{folder}, the folder of downloads, cannot be created: {error.strerror}. Set "
                "XDG_CACHE_HOME to a folder that can be written."
            ) from error
        with FileLock(f"{path}.lock"):
            # Another process may have fetched it in the meantime.
            if not path.exists():
                _fetch(url, path)
    return path


def _fetch(url: str, path: Path) -> None:
    request = Request(url, headers={"User-Agent": "elmo_plugin", "Accept-Encoding": "identity"})
    unfinished = Path(f"{path}.unfinished")
    try:
        response = urlopen(request, timeout=_TIMEOUT)
    except HTTPError as error:
        error.close()
        if error.code in _MISSING:
            raise FileNotFoundError(
                f"No such file, or no permission to read it (HTTP status {error.code}): {url}."
            ) from error
        raise _failed(url, error) from error
    except URLError as error:
        raise _failed(url, error.reason) from error
    except (OSError, HTTPException, ValueError) as error:
        raise _failed(url, error) from error
    print(f"Downloading {url} to {path}", file=sys.stderr, flush=True)
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    with response, progress("bytes", total) as advance:
        # Replaces what a killed process has left.
        with open(unfinished, "wb") as file:
            while block := _read(response, url):
                file.write(block)
                advance(len(block))
    found = unfinished.stat().st_size
    if total not in (None, found):
        raise _failed(url, f"expected {total:,} bytes, received {found:,}")
    unfinished.replace(path)


def _read(response: HTTPResponse, url: str) -> bytes:
    try:
        return response.read(_BLOCK)
    except (OSError, HTTPException) as error:
        raise _failed(url, error) from error


def _failed(url: str, reason: object) -> ConfigurationError:
    return ConfigurationError(
        f"{url} cannot be downloaded: {reason}. Try it again, or download the file yourself and "
        "give its path."
    )
