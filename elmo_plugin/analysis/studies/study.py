import json
import os
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Optional, Tuple, Union

from elmo_plugin.analysis.studies.inputs import digest_and_files, missing_corpora
from elmo_plugin.util.errors import ConfigurationError, jsonnet_message


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
        If jsonnet fails, as for a setting that does not exist, if a setting is of another type, if
        rows or columns have the same name, or if a column is compared with one that its row does
        not have.
    """
    rendered = _render(os.fspath(path))
    try:
        rows = tuple(map(Row.from_dict, rendered["rows"]))
        runs = tuple(
            Run(**run, digest=digest_and_files(run["experiment"], run["evaluate"])[0])
            for run in rendered["runs"]
        )
        study = Study(rendered["title"], rows, runs)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: expected a study, which imports lib/study.libsonnet, found {error!r}."
        ) from error
    _check_types(study, str(path))
    _check(study, str(path))
    return study


def _render(path: str) -> Dict[str, Any]:
    """The content of a jsonnet file, with the environment as external variables."""
    import _jsonnet

    if not os.path.isfile(path):
        raise ConfigurationError(f"{path}: no such file. Name the jsonnet file of a study.")
    # Python decodes bytes that are not UTF-8 as surrogates. The bindings fail for variables that
    # have any, even if nothing reads them.
    variables = {n: v for n, v in os.environ.items() if not re.search("[\udc80-\udcff]", n + v)}
    try:
        return json.loads(_jsonnet.evaluate_file(path, ext_vars=variables))
    except RuntimeError as error:
        message = str(error).strip()
        raise ConfigurationError(f"{path}: {jsonnet_message(message) or message}") from error


def _check_types(study: Study, path: str) -> None:
    for row in study.rows:
        of_row = f"{path}: row {row.name}"
        _expect(str, "a string", of_row, name=row.name)
        flags = {name: getattr(row, name) for name in ("percent", "lower_is_better", "compare")}
        _expect(bool, "true or false", of_row, **flags)
        _expect(int, "a whole number", of_row, num_baselines=row.num_baselines)
        for column in row.columns:
            of_column = f"{of_row}, column {column.name}"
            _expect(str, "a string", of_column, name=column.name, metric=column.metric)
            _expect((int, float, type(None)), "a number or null", of_column, paper=column.paper)
    _expect(str, "a string", path, title=study.title)
    for run in study.runs:
        _expect(int, "whole numbers", f"{path}: row {run.row}", seeds=run.seed)
        _expect((int, float), "numbers", f"{path}: row {run.row}", fractions=run.fraction)


def _expect(kind: Any, description: str, where: str, **settings: Any) -> None:
    for name, value in settings.items():
        # In Python, true is a whole number.
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise ConfigurationError(
                f"{where}: `{name}` should be {description}, found {json.dumps(value)}."
            )


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
        for what, path in missing_corpora(run.experiment, run.evaluate):
            raise ConfigurationError(
                f"{run.name}: {what} is {path}, which does not exist or has no files. Put it "
                "there, or set ELMO_DATA to the folder of the corpora."
            )
