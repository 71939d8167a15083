import glob
import hashlib
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from elmo_plugin.analysis.studies.render import render
from elmo_plugin.util.errors import ConfigurationError

_DATA = ("train_data_path", "validation_data_path")


@dataclass(frozen=True)
class Column:
    """A column of a study: models with the same settings."""

    name: str
    #: A name in the output of `allennlp evaluate`, or in the metrics of a training run.
    metric: str
    #: The score of the paper as printed there: in percent if the row's `percent` is true, else in
    #: the unit of the metric.
    paper: Optional[float]
    #: The name of the column to compare it with; `None` means the baseline.
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
    #: How many of the columns, from the first on, are baselines.
    num_baselines: int

    @property
    def scale(self) -> float:
        """What a score is multiplied by to show it."""
        return 100.0 if self.percent else 1.0

    @classmethod
    def from_dict(cls, row: Dict[str, Any]) -> "Row":
        """The row of which `dataclasses.asdict` made this dictionary."""
        return cls(**{**row, "columns": tuple(Column(**column) for column in row["columns"])})


@dataclass(frozen=True)
class Run:
    """A training, and the evaluation of its model."""

    #: The cell of the table to which its score belongs.
    row: str
    column: str
    #: The share of the training data.
    fraction: float
    seed: int
    #: The file to evaluate the model on.
    evaluate: Optional[str]
    #: The configuration for `allennlp train`.
    experiment: Dict[str, Any]
    #: A hash of all that determines the score: of the experiment with the contents of its files in
    #: place of their paths, and of the evaluated file.
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
    Renders a study and all its experiments.

    # Parameters

    path : `Union[str, os.PathLike]`
        A jsonnet file that imports `experiments/lib/study.libsonnet`.

    # Raises

    `ConfigurationError`
        If jsonnet fails, as for a setting that does not exist, if rows or columns have the same
        name, or if a column is compared with one that its row does not have.
    """
    rendered = render(os.fspath(path))
    try:
        rows = tuple(map(Row.from_dict, rendered["rows"]))
        runs = tuple(Run(**run, digest=_digest(run)) for run in rendered["runs"])
        study = Study(rendered["title"], rows, runs)
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{path}: expected a study, which imports lib/study.libsonnet, found {error!r}."
        ) from error
    _check(study, str(path))
    return study


def _check(study: Study, path: str) -> None:
    if not study.runs:
        raise ConfigurationError(f"{path}: expected runs, found none.")
    for names in (
        [row.name for row in study.rows],
        *([column.name for column in row.columns] for row in study.rows),
    ):
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ConfigurationError(
                f"{path}: expected different names of rows and of the columns of a row, found "
                f"{', '.join(repeated)} several times."
            )
    cells = [(run.row, run.column, run.fraction, run.seed) for run in study.runs]
    repeated_runs = [run.name for run, cell in zip(study.runs, cells) if cells.count(cell) > 1]
    if repeated_runs:
        raise ConfigurationError(
            f"{path}: expected each seed and each fraction of a row once, found {repeated_runs[0]} "
            "several times."
        )
    for row in study.rows:
        if not 1 <= row.num_baselines <= len(row.columns):
            raise ConfigurationError(
                f"{path}: row {row.name}: `num_baselines` should be 1 to {len(row.columns)}, the "
                f"number of its columns, found {row.num_baselines}."
            )
        for column in row.columns:
            others = [other.name for other in row.columns if other is not column]
            if column.against not in (None, *others):
                raise ConfigurationError(
                    f"{path}: row {row.name}, column {column.name}: `against` should be null or "
                    f"one of {', '.join(others)}, found {column.against}."
                )


def validation_metric(experiment: Dict[str, Any]) -> str:
    """
    The metric that chooses the best epoch, with its sign: the first of several, and AllenNLP's
    default, the loss, if none is named.
    """
    found = experiment.get("trainer", {}).get("validation_metric") or "-loss"
    return found[0] if isinstance(found, list) else found


def check_inputs(runs: Iterable[Run]) -> None:
    """
    # Raises

    `ConfigurationError`
        If a corpus of a run does not exist.
    """
    for run in runs:
        inputs = {name: _data_paths(run.experiment.get(name)) for name in _DATA}
        for what, paths in {**inputs, "evaluate": [run.evaluate] if run.evaluate else []}.items():
            for path in paths:
                if "://" not in path and not _files(path):
                    raise ConfigurationError(
                        f"{run.name}: {what} is {path}, which does not exist or has no files. Put "
                        "it there, or set ELMO_DATA to the folder of the corpora."
                    )


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


def _with_data_paths(experiment: Dict[str, Any]) -> Dict[str, Any]:
    """With a list in place of a corpus that is not the path of a file or a pattern."""
    given = {name: experiment[name] for name in _DATA if experiment.get(name)}
    paths = {name: _data_paths(value) for name, value in given.items()}
    lists = {name: found for name, found in paths.items() if found not in ([], [given[name]])}
    return {**experiment, **lists}


def file_hashes(experiment: Any) -> Dict[str, str]:
    """
    The SHA-256 of each file that an experiment names (biLM, vectors, corpora), by its path; of all
    files that a pattern matches, and of the `.gz` that is read in place of a missing file.
    """
    parts = _with_data_paths(experiment).values() if isinstance(experiment, dict) else experiment
    found: Dict[str, str] = {}
    for part in parts:
        if isinstance(part, (dict, list)):
            found.update(file_hashes(part))
        elif isinstance(part, str):
            found.update((path, _hash(path)) for path in _files(part))
    return found


def _digest(run: Dict[str, Any]) -> str:
    parts = _portable({"experiment": run["experiment"], "evaluate": run["evaluate"]})
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _portable(value: Any) -> Any:
    """With hashes instead of paths, which differ between machines."""
    if isinstance(value, dict):
        return {name: _portable(part) for name, part in _with_data_paths(value).items()}
    if isinstance(value, list):
        return [_portable(part) for part in value]
    if not isinstance(value, str):
        return value
    files = _files(value)
    return " ".join(["sha256", *map(_hash, files)]) if files else value


@lru_cache(maxsize=None)
def _hash(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
