"""What a study trains and compares, and which files its runs read."""

import glob
import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from elmo_plugin.util.errors import ConfigurationError, jsonnet_message

_CORPORA = ("train_data_path", "validation_data_path", "test_data_path", "evaluate")
# Settings that may name a folder: a trained model, a vocabulary, or text for a biLM.
_FOLDERS = ("bilm", "weight_file", "file", "directory", "text")


@dataclass(frozen=True)
class Column:
    """A column of a study: models with the same settings."""

    name: str
    #: A name in the output of `allennlp evaluate`, or in the metrics of a training run.
    metric: str
    #: The score as printed in the paper: in percent if the row's `percent` is true.
    paper: Optional[float]
    #: The name of the column to compare with; `None` means the baseline.
    against: Optional[str] = None


@dataclass(frozen=True)
class Row:
    """A row of a study: models of a task."""

    name: str
    columns: Tuple[Column, ...]
    #: The metric is a fraction, shown as a percentage.
    percent: bool
    lower_is_better: bool
    #: Whether columns are compared with the baseline.
    compare: bool
    #: How many of the first columns are baselines.
    num_baselines: int

    @property
    def scale(self) -> float:
        """The factor by which a score is shown."""
        return 100.0 if self.percent else 1.0

    @classmethod
    def from_dict(cls, row: Dict[str, Any]) -> "Row":
        """Inverts `dataclasses.asdict`."""
        return cls(**{**row, "columns": tuple(Column(**column) for column in row["columns"])})


@dataclass(frozen=True)
class Run:
    """One training run and the evaluation of its model."""

    #: The cell in the table that shows its score.
    row: str
    column: str
    #: The share of the training data.
    fraction: float
    seed: int
    #: The file to evaluate the model on.
    evaluate: Optional[str]
    #: The configuration for `allennlp train`.
    experiment: Dict[str, Any]
    #: From `digest_and_files`.
    digest: str

    @property
    def name(self) -> str:
        """A readable name: `NER, ELMo, 10 %, seed 3`."""
        fraction = "" if self.fraction == 1 else f"{100 * self.fraction:g} %, "
        return f"{self.row}, {self.column}, {fraction}seed {self.seed}"


@dataclass(frozen=True)
class Study:
    """What is trained and compared."""

    title: str
    rows: Tuple[Row, ...]
    #: Runs with the same digest are trained only once.
    runs: Tuple[Run, ...]


def read_study(path: Union[str, os.PathLike]) -> Study:
    """
    Renders a jsonnet file that imports `experiments/lib/study.libsonnet`, with all experiments.
    Raises `ConfigurationError` if it is missing or not a study, or if a setting is wrong.
    """
    import _jsonnet

    if not os.path.isfile(path):
        raise ConfigurationError(f"{path}: no such file. Name the jsonnet file of a study.")
    try:
        rendered = json.loads(_jsonnet.evaluate_file(os.fspath(path), ext_vars=dict(os.environ)))
        rows = tuple(map(Row.from_dict, rendered["rows"]))
        runs = tuple(
            Run(**run, digest=digest_and_files(run["experiment"], run["evaluate"])[0])
            for run in rendered["runs"]
        )
        return Study(rendered["title"], rows, runs)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected a study, which imports lib/study.libsonnet, found {error!r}."
        ) from error
    except RuntimeError as error:
        message = str(error).strip()
        raise ConfigurationError(f"{path}: {jsonnet_message(message) or message}") from error


def validation_metric(experiment: Dict[str, Any]) -> str:
    """The signed metric that selects the best epoch, or the first of several; default `-loss`."""
    found = experiment.get("trainer", {}).get("validation_metric") or "-loss"
    return found[0] if isinstance(found, list) else found


def check_inputs(runs: Iterable[Run]) -> None:
    """Raises `ConfigurationError` if a corpus of a run does not exist. Skips URLs."""
    for run in runs:
        inputs = {**run.experiment, "evaluate": run.evaluate}
        for what in _CORPORA:
            for path in _data_paths(inputs.get(what)):
                if "://" not in path and not _files(path):
                    raise ConfigurationError(
                        f"{run.name}: {what} is {path}, which does not exist or has no files. Put "
                        "it there, or set ELMO_DATA to the folder of the corpora."
                    )


def digest_and_files(
    experiment: Dict[str, Any], evaluate: Optional[str]
) -> Tuple[str, Dict[str, str]]:
    """
    Returns the run's digest, and the SHA-256 of each file that it names (biLM, vectors, corpora) by
    path. The digest hashes settings, with contents of files in place of paths, which differ between
    machines. A pattern means all its files, a missing file its `.gz`, the options of a biLM all
    files of their folder.
    """
    files: Dict[str, str] = {}
    parts = _portable({"experiment": experiment, "evaluate": evaluate}, files)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16], files


def _portable(value: Any, files: Dict[str, str]) -> Any:
    """Replaces paths by hashes of their files, which are added to `files`."""
    if isinstance(value, dict):
        # Lists replace folders and several files, but not patterns.
        paths = {name: _data_paths(value.get(name)) for name in (*_CORPORA, *_FOLDERS)}
        bilm = str(value.get("bilm"))
        if bilm.endswith(".json") and os.path.isfile(bilm):
            # The weights are beside the options.
            paths["bilm"] = _data_paths(os.path.dirname(bilm) or ".")
        lists = {n: found for n, found in paths.items() if found and found != [value[n]]}
        return {name: _portable(part, files) for name, part in {**value, **lists}.items()}
    if isinstance(value, list):
        return [_portable(part, files) for part in value]
    if not isinstance(value, str):
        return value
    found = {path: _hash(path) for path in _files(value)}
    files.update(found)
    return " ".join(["sha256", *found.values()]) if found else value


def _files(name: str) -> List[str]:
    """The file at a path, else its `.gz`, else all files that match it as a pattern."""
    name = os.path.expanduser(name.removeprefix("file://"))
    for file in (name, f"{name}.gz"):
        if os.path.isfile(file):
            return [file]
    # Other strings in an experiment, such as regular expressions, name no folder.
    names = (name, f"{name}.gz") if os.sep in name else ()
    found = next(filter(None, (glob.glob(each, recursive=True) for each in names)), [])
    return sorted(filter(os.path.isfile, found))


def _data_paths(value: Any) -> List[str]:
    """Splits a list, a string with commas, or a folder into paths. An empty folder stays a path."""
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
    """`state` changes with the file, so that the cache never returns an old hash."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
