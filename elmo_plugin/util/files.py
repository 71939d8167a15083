"""Paths: local copies of URLs, pipes, the user's cache, and files that come with the package."""

import errno
import hashlib
import os
import re
import sys
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Dict, Optional, Union
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from filelock import FileLock

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress

#: Errors of a full disk, or of a limit on what a user may write.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: Types of numbers in the weight files that we write.
WRITABLE_DTYPES = ("float32", "float16")
#: The name of standard input, and its path. `numbered_lines` reads it where no such file is, too.
STANDARD_INPUT, STDIN_PATH = "-", "/dev/stdin"
_BLOCK = 1 << 20
# Without an answer for so many seconds, the connection counts as broken.
_TIMEOUT = 60
# Of a file that does not exist. S3 answers 403 if its folder may not be listed.
_MISSING = (403, 404, 410)
_PACKAGE = Path(__file__).resolve().parent.parent


def expanded(path: Union[str, PathLike]) -> Path:
    """The path of a file or folder to write, in which `~` is the home folder."""
    return Path(os.path.expanduser(path))


def is_pipe(path: Union[str, PathLike]) -> bool:
    """Whether a path is neither a file nor a folder: a pipe can be read only once."""
    if not os.path.exists(path):
        return os.fspath(path) == STDIN_PATH
    return not os.path.isfile(path) and not os.path.isdir(path)


def cache_folder() -> Optional[Path]:
    """The folder `elmo_plugin` in the user's cache folder; `None` if there is no home folder."""
    for caches in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        # The XDG specification ignores relative paths. Without a home folder `~` is not expanded.
        if os.path.isabs(caches):
            return Path(caches) / "elmo_plugin"
    return None


def download(url: str, owner: Optional[str] = None) -> Path:
    """
    The local copy of a file on a web server (`http://` or `https://`), in the user's cache. It is
    fetched once, with progress on standard error, into `FILE.unfinished`, which is renamed when it
    is complete. Each URL has a folder of its own; files with the same `owner`, the URL of the file
    that they belong to, are beside each other.

    Raises `FileNotFoundError` if there is no such file or the server does not allow reading it, and
    `ConfigurationError` if the server cannot be reached or breaks off, the file cannot be written,
    or there is no home folder; the next call starts again.
    """
    folder = cache_folder()
    if folder is None:
        raise ConfigurationError(
            "Expected a folder for downloads, found no home folder. Set XDG_CACHE_HOME."
        )
    digest = hashlib.sha256((owner or url).encode())
    try:
        name = urlsplit(url).path.rpartition("/")[2]
        name = re.sub(r"[^\w.-]", "_", unquote(name)).lstrip(".") or "index"
        path = folder / "downloads" / digest.hexdigest()[:16] / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{path}.lock"):
                # Another process may have fetched it in the meantime.
                if not path.exists():
                    _fetch(url, path)
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, HTTPError):
            error.close()
            if error.code in _MISSING:
                raise FileNotFoundError(
                    f"No such file, or no permission to read it (HTTP status {error.code}): {url}."
                ) from error
        raise ConfigurationError(
            f"{url} cannot be downloaded: {getattr(error, 'reason', error)}. Try it again, set "
            "XDG_CACHE_HOME to a folder that can be written, or download the file yourself and "
            "give its path."
        ) from error
    return path


def _fetch(url: str, path: Path) -> None:
    request = Request(url, headers={"User-Agent": "elmo_plugin", "Accept-Encoding": "identity"})
    # Replaces what a killed process has left.
    unfinished = Path(f"{path}.unfinished")
    with urlopen(request, timeout=_TIMEOUT) as response:
        print(f"Downloading {url} to {path}", file=sys.stderr, flush=True)
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
        with progress("bytes", total) as advance, open(unfinished, "wb") as file:
            while block := response.read(_BLOCK):
                file.write(block)
                advance(len(block))
    found = unfinished.stat().st_size
    if total not in (None, found):
        raise ValueError(f"expected {total:,} bytes, received {found:,}")
    unfinished.replace(path)


def local_path(path: Union[str, PathLike]) -> str:
    """
    The local path of a file or folder, which may begin with `~` or `file://`, or be a URL
    (`https://` or `http://`), which is downloaded once, see `download`. Raises `FileNotFoundError`
    if there is no such file or a server does not allow reading it.
    """
    path = os.fspath(path)
    if path.startswith(("https://", "http://")):
        return str(download(path))
    path = os.path.expanduser(path.removeprefix("file://"))
    if not os.path.exists(path):
        raise FileNotFoundError(f"No such file: {path}.")
    return path


def shipped(path: str) -> Path:
    """
    The local path of a file or folder of this project, such as `pretrained/small/options.json`. A
    wheel has it inside the package, a checkout beside it.
    """
    inside = _PACKAGE / path
    return inside if inside.exists() else _PACKAGE.parent / path


#: The shipped model that finds verbs for semantic role labelling. The server does not show it.
TAGGER = "tagger"


def shipped_archives() -> Dict[str, Path]:
    """The trained task models that come with the package, by task."""
    found = sorted(shipped("pretrained/tasks").glob("*/model.tar.gz"))
    return {path.parent.name: path for path in found}


def find_archive(name: str) -> str:
    """
    The path of a trained model. `name` is the path or URL of a model.tar.gz or of the folder of a
    training run, or the name of a model that comes with the package. Raises `ConfigurationError` if
    it is neither.
    """
    archives = shipped_archives()
    path = os.path.expanduser(name)
    is_trained = os.path.isfile(path) or os.path.isfile(os.path.join(path, "config.json"))
    if is_trained or "://" in name:
        return name
    if name in archives:
        return str(archives[name])
    found = "a folder without a config.json" if os.path.isdir(path) else "no such file"
    raise ConfigurationError(
        f"{name}: expected a model.tar.gz, the folder of a training run or one of "
        f"{', '.join(archives)}, found {found}."
    )
