"""The files that a run of a study reads, and the digest of their contents."""

import glob
import hashlib
import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE
from elmo_plugin.environment import setting

_CORPORA = ("train_data_path", "validation_data_path", "test_data_path", "evaluate")
# What else may be a folder: that of a trained model or of a vocabulary, or text for a biLM.
_FOLDERS = ("weight_file", "file", "directory", "text")


def missing_corpora(
    experiment: Dict[str, Any], evaluate: Optional[str]
) -> Iterator[Tuple[str, str]]:
    """
    The corpora that do not exist: `train_data_path`, `validation_data_path`, `test_data_path` or
    `evaluate`, and the path. Those of URLs are not looked for.

    # Parameters

    experiment : `Dict[str, Any]`
        The configuration for `allennlp train`.
    evaluate : `Optional[str]`
        What the model is evaluated on.
    """
    inputs = {**experiment, "evaluate": evaluate}
    for what in _CORPORA:
        for path in _data_paths(inputs.get(what)):
            if "://" not in path and not _files(path):
                yield what, path


def digest_and_files(
    experiment: Dict[str, Any], evaluate: Optional[str]
) -> Tuple[str, Dict[str, str]]:
    """
    # Parameters

    experiment : `Dict[str, Any]`
        The configuration for `allennlp train`.
    evaluate : `Optional[str]`
        What the model is evaluated on.

    # Returns

    `Tuple[str, Dict[str, str]]`
        A hash of all that determines the score of a run: of the experiment with the contents of its
        files in place of their paths, which differ between machines, and of the evaluated file.

        The SHA-256 of each file that a run reads (biLM, vectors, corpora), by its path; of all
        files that a pattern matches, and of the `.gz` that is read in place of a missing file.
    """
    files: Dict[str, str] = {}
    parts = _portable({"experiment": experiment, "evaluate": evaluate}, files)
    implied = _implied_files({**experiment, "evaluate": evaluate})
    also_read = {path: _hash(path) for path in implied if path not in files}
    if also_read:
        parts["also_read"] = sorted(also_read.values())
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return digest, {**files, **also_read}


def _implied_files(inputs: Dict[str, Any]) -> List[str]:
    """
    The files that a run reads even if they are not named: the softmax and the vocabulary beside the
    initial weights of a language model, the vocabulary beside the options of a biLM with token
    embeddings, and the default biLM.
    """
    paths = list(_implied_paths(inputs))
    for part in (inputs.get("dataset_reader"), inputs.get("model")):
        part = {"type": part} if isinstance(part, str) else part or {}
        has_options = part.get("options") is not None or part.get("options_file") is not None
        if part.get("type") == "elmo-bilm" and not has_options:
            paths.append(setting("ELMO_OPTIONS"))
    return sorted({file for path in paths for file in _files(path)})


def _implied_paths(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        kind = value.get("type")
        # A placement has the settings of its ELMo in `elmo`, usually without a type.
        elmo = value.get("elmo") if kind == "elmo-placement" else value
        has_weights = kind in ("elmo-token-embedder", "elmo-placement")
        if (has_weights or kind == "elmo-characters") and isinstance(elmo, dict):
            if elmo.get("options_file") is None:
                yield setting("ELMO_OPTIONS")
            if has_weights and elmo.get("weight_file") is None:
                yield setting("ELMO_WEIGHTS")
        initial = value.get("initial_weights")
        if isinstance(initial, str):
            initial = {"file": initial}
        if isinstance(initial, dict) and "file" in initial:
            yield _beside(initial["file"], SOFTMAX_FILE)
            if initial.get("vocabulary_file") is None:
                yield _beside(initial["file"], VOCABULARY_FILE)
        if _has_token_embeddings(value.get("options_file")):
            yield _beside(value["options_file"], VOCABULARY_FILE)
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _implied_paths(part)


def _beside(path: str, name: str) -> str:
    return os.path.join(os.path.dirname(path), name)


def _has_token_embeddings(options_file: Any) -> bool:
    """Whether this is the options file of a biLM whose words are in a file beside it."""
    for path in _files(options_file) if isinstance(options_file, str) else ():
        try:
            options = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            continue
        return isinstance(options, dict) and options.get("char_cnn") is None
    return False


def _portable(value: Any, files: Dict[str, str]) -> Any:
    """With hashes instead of paths; those of the files are added to `files`."""
    if isinstance(value, dict):
        return {name: _portable(part, files) for name, part in _expanded(value).items()}
    if isinstance(value, list):
        return [_portable(part, files) for part in value]
    if not isinstance(value, str):
        return value
    found = {path: _hash(path) for path in _files(value)}
    files.update(found)
    return " ".join(["sha256", *found.values()]) if found else value


def _expanded(part: Dict[str, Any]) -> Dict[str, Any]:
    """With a list in place of a folder or of several files, but not of a pattern."""
    given = {name: part[name] for name in (*_CORPORA, *_FOLDERS) if part.get(name)}
    paths = {name: _data_paths(value) for name, value in given.items()}
    lists = {name: found for name, found in paths.items() if found not in ([], [given[name]])}
    return {**part, **lists}


def _files(name: str) -> List[str]:
    """The files of a path: itself, its `.gz`, or many if it is a pattern such as `train-*.txt`."""
    name = os.path.expanduser(name.removeprefix("file://"))
    for file in (name, f"{name}.gz"):
        if os.path.isfile(file):
            return [file]
    # Other strings of an experiment, such as regular expressions, name no folder.
    names = (name, f"{name}.gz") if os.sep in name else ()
    found = next(filter(None, (glob.glob(each, recursive=True) for each in names)), [])
    return sorted(filter(os.path.isfile, found))


def _data_paths(value: Any) -> List[str]:
    """
    The paths of a corpus, for a biLM one or many (see `Text`): of a list or of a string with
    commas, and the files of a folder, or the folder itself if it has none.
    """
    if isinstance(value, list):
        return [path for part in value for path in _data_paths(part)]
    if not isinstance(value, str) or not value:
        return []
    if os.path.isdir(value):
        names = sorted(name for name in os.listdir(value) if not name.startswith("."))
        paths = [os.path.join(value, name) for name in names]
        return list(filter(os.path.isfile, paths)) or [value]
    if "," in value and not _files(value):
        return [path for part in value.split(",") for path in _data_paths(part.strip())]
    return [value]


def _hash(path: str) -> str:
    found = os.stat(path)
    return _hash_of(path, found.st_size, found.st_mtime_ns, found.st_ino)


@lru_cache(maxsize=None)
def _hash_of(path: str, *state: int) -> str:
    """`state` is that of the file: a file that has changed is read again."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
