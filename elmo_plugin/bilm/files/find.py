"""Finds a biLM by the name of its folder, archive or options file, its URL, or its own name."""

import json
import os
import re
import tempfile
import zipfile
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Iterator, Optional, Union
from urllib.parse import urljoin, urlsplit

from elmo_plugin.bilm.files.kinds import (
    CONFIG_FILE,
    SAFETENSORS_FILE,
    WEIGHT_FILES,
    FoundBilm,
    find_in_folder,
    of_options_file,
    weights_beside,
    weights_names,
)
from elmo_plugin.bilm.files.published import PUBLISHED
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILES, SoftmaxWeights, find_softmax
from elmo_plugin.bilm.files.trained import is_archive, read_parameters
from elmo_plugin.bilm.options import OPTIONS_FILE, BilmOptions
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.files import download
from elmo_plugin.util.unpacking import unpack, unpack_zip

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_HUB_FILES = [
    *(OPTIONS_FILE, *WEIGHT_FILES, CONFIG_FILE, SAFETENSORS_FILE),
    *(VOCABULARY_FILE, *SOFTMAX_FILES, "*_options.json", "*_weights*.hdf5"),
]


@contextmanager
def find_bilm(
    name: Union[str, PathLike],
    weight_file: Optional[Union[str, PathLike]] = None,
    revision: Optional[str] = None,
    token: Optional[str] = None,
) -> Iterator[FoundBilm]:
    """
    Finds a biLM; what it was unpacked into is removed afterwards. Raises `ConfigurationError` with
    what was tried if there is none, or if it is damaged or does not fit.

    `name` is a folder, an archive (zip, tar, `model.tar.gz`) or an options file with its weights
    beside it, as a path or URL; a name of `PUBLISHED`; or a repository of the Hugging Face Hub, for
    which `revision` and `token` are. With a `weight_file`, it is an options file. A local file or
    folder of that name comes first.
    """
    if weight_file is not None:
        yield _of_files(name, weight_file)
        return
    path = _local(os.fspath(name), revision, token)
    if path.is_dir():
        yield find_in_folder(path)
    elif is_archive(path) or zipfile.is_zipfile(path):
        with tempfile.TemporaryDirectory() as folder:
            # The temporary folder means nothing to who reads a message.
            try:
                (unpack_zip if zipfile.is_zipfile(path) else unpack)(path, folder, str(name))
                yield find_in_folder(Path(folder))
            except ConfigurationError as error:
                raise ConfigurationError(str(error).replace(folder, str(name))) from error
    elif _is_json(path):
        yield of_options_file(path)
    else:
        raise ConfigurationError(
            f"{name} is no biLM: expected a folder, a zip or tar archive, or an options file, "
            "found another file, or one that is damaged or cut short. Name the folder that it is "
            "in, or its options.json."
        )


def softmax_of_bilm(
    name: Union[str, PathLike], weight_file: Optional[Union[str, PathLike]] = None
) -> Optional[SoftmaxWeights]:
    """The softmax that belongs to a biLM, see `find_bilm` and `find_softmax`; `None` if none."""
    with find_bilm(name, weight_file) as found:
        if found.weight_file is None:
            return None
        return find_softmax(found.weight_file, found.options)


def may_be_elsewhere(name: Union[str, PathLike]) -> bool:
    """Whether this is, or may be, no path but a published name or a repository of the Hub."""
    name = os.fspath(name)
    if os.path.exists(os.path.expanduser(name)):
        return False
    folder = os.path.dirname(name)
    is_hub = _HUB_NAME.fullmatch(name) is not None and not os.path.isdir(folder)
    return name in PUBLISHED or is_hub


def _of_files(options_file: Union[str, PathLike], weight_file: Union[str, PathLike]) -> FoundBilm:
    options = BilmOptions.from_file(options_file)
    read = partial(read_parameters, options, weight_file)
    return FoundBilm(options, read, str(options_file), weight_file)


def _local(name: str, revision: Optional[str], token: Optional[str]) -> Path:
    """The local folder, archive or options file, downloaded if needed."""
    path = Path(os.path.expanduser(name.removeprefix("file://")))
    if os.path.exists(path):
        return path
    if name in PUBLISHED and PUBLISHED[name].is_shipped:
        return _shipped(name)
    if name in PUBLISHED:
        return _fetched(PUBLISHED[name].options_file, PUBLISHED[name].weight_file)
    if name.startswith(("http://", "https://")):
        return _fetched(name)
    if _HUB_NAME.fullmatch(name):
        return _of_hub(name, revision, token)
    raise ConfigurationError(
        f"{name} is no biLM: there is no such file or folder (relative to {os.getcwd()}), and it "
        "is neither a URL (http:// or https://), the name of a repository (user/name), nor one of "
        f"{', '.join(PUBLISHED)}."
    )


def _shipped(name: str) -> Path:
    path = Path(PUBLISHED[name].options_file)
    if not path.exists():
        raise ConfigurationError(
            f"{name} is only in a checkout of the project, not in this installation: expected "
            f"{path}. Give the URL of that file in the repository, or a biLM of `elmo models`."
        )
    return path


def _fetched(url: str, weights: Optional[str] = None) -> Path:
    """Downloads a file and, if it is an options file, the files that belong to it."""
    get = partial(download, owner=url)
    try:
        path = get(url)
        if is_archive(path) or zipfile.is_zipfile(path):
            return path
        if not _is_json(path):
            # Perhaps a page of the server, or cut short: it must not be read again.
            path.unlink()
            raise ConfigurationError(
                f"{url}: expected a zip, an archive or an options file, found another file or a "
                "part of one. Check the URL, or try it again."
            )
        if weights_beside(path) is None:
            name, *_ = weights_names(urlsplit(url).path.rpartition("/")[2])
            get(weights or _beside(url, name))
        if _has_token_embeddings(path):
            get(_beside(url, VOCABULARY_FILE))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"{error} Expected a zip, an archive, or an options file and its weights in one "
            "folder of the server."
        ) from error
    return path


def _beside(url: str, name: str) -> str:
    query = urlsplit(url).query
    return urljoin(url, name) + (f"?{query}" if query else "")


def _is_json(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(100).lstrip().startswith(b"{")


def _has_token_embeddings(options_file: Path) -> bool:
    try:
        options = json.loads(options_file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        return False  # Reading it raises the error for users.
    return options.get("char_cnn") is None


def _of_hub(name: str, revision: Optional[str], token: Optional[str]) -> Path:
    purpose = f"{name} is no folder (relative to {os.getcwd()}), and reading the Hugging Face Hub"
    hub = optional_package("huggingface_hub", purpose)
    settings = {"revision": revision, "token": token, "allow_patterns": _HUB_FILES}
    try:
        return Path(hub.snapshot_download(name, **settings))
    # The package raises errors of many classes, also of its HTTP library.
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"{name} is neither a folder (relative to {os.getcwd()}) nor a repository that can be "
            f"read from the Hugging Face Hub ({reason})."
        ) from error
