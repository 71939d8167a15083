"""Paths: local copies of URLs, pipes, the user's cache, and files that come with the package."""

import errno
import os
from os import PathLike
from pathlib import Path
from typing import Dict, Optional, Union

from elmo_plugin.util.download import download
from elmo_plugin.util.errors import ConfigurationError

#: Errors of a full disk, or of a limit on what a user may write.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_PACKAGE = Path(__file__).resolve().parent.parent


def expanded(path: Union[str, PathLike]) -> Path:
    """The path of a file or folder to write, in which `~` is the home folder."""
    return Path(os.path.expanduser(path))


def is_pipe(path: Union[str, PathLike]) -> bool:
    """Whether a path is neither a file nor a folder: a pipe can be read only once."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def cache_folder() -> Optional[Path]:
    """The folder `elmo_plugin` in the user's cache folder; `None` if there is no home folder."""
    for caches in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):
        # The XDG specification ignores relative paths. Without a home folder `~` is not expanded.
        if os.path.isabs(caches):
            return Path(caches) / "elmo_plugin"
    return None


def downloads_folder() -> Path:
    """The folder of downloaded files. Raises `ConfigurationError` if there is no home folder."""
    folder = cache_folder()
    if folder is None:
        raise ConfigurationError(
            "Expected a folder for downloads, found no home folder. Set XDG_CACHE_HOME."
        )
    return folder / "downloads"


def local_path(path: Union[str, PathLike]) -> str:
    """
    The local path of a file or folder, which may begin with `~` or `file://`, or be a URL that the
    library `cached_path` reads (`https://`, `s3://`, `gs://`, `hf://` …). It is downloaded once,
    into AllenNLP's cache folder. `https://host/archive.zip!folder/file` is a member of an archive.
    Without `cached_path`, `https://` and `http://` are read too, see `download`.

    Raises `FileNotFoundError` if there is no such file or a server does not allow reading it, and
    `ImportError` if `cached_path` is needed but not installed.
    """
    path = os.fspath(path)
    if "://" in path and not path.startswith("file://"):
        # Not imported at module level: it takes a second, and is not needed for local files.
        try:
            from cached_path import cached_path
        except ImportError as error:
            if path.startswith(("http://", "https://")) and "!" not in path:
                return str(download(path, downloads_folder()))
            raise ImportError(
                f"{path} is a URL, and downloading it needs the package cached-path: "
                "pip install cached-path. Or download the file and use its local path."
            ) from error
        root = Path(os.environ.get("ALLENNLP_CACHE_ROOT") or Path.home() / ".allennlp")
        try:
            return str(cached_path(path, cache_dir=root / "cache", extract_archive="!" in path))
        except OSError as error:
            # S3 answers 403 for a file that does not exist, if its folder may not be listed.
            if getattr(getattr(error, "response", None), "status_code", None) != 403:
                raise
            raise FileNotFoundError(
                f"No such file, or no permission to read it (HTTP status 403): {path}."
            ) from error
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
