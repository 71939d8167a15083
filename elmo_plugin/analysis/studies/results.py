import json
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Set

from elmo_plugin.analysis.studies.study import Row, Run, Study
from elmo_plugin.analysis.studies.train_run import Score
from elmo_plugin.util.atomic_write import write_json_rows
from elmo_plugin.util.errors import ConfigurationError


class Results:
    """
    The scores of the runs of a study: the file `results.json`, all that tables and plots need. It
    is read if it exists. Raises `ConfigurationError` if the file is not one that `save` wrote.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.title, self.command = "", ""
        self.rows: List[Row] = []
        # For each run: its cell of the table, its seed, and the digest by which its score is found.
        self._runs: List[Dict[str, Any]] = []
        self._scores: Dict[str, Score] = {}
        if path.exists():
            self._read()

    def set_study(self, study: Study, command: str = "") -> None:
        """
        Takes over title, rows and runs of a study, and the command that trains it. Scores of other
        runs are kept.
        """
        self.title, self.rows, self.command = study.title, list(study.rows), command
        fields = ("row", "column", "fraction", "seed", "digest")
        self._runs = [{name: getattr(run, name) for name in fields} for run in study.runs]

    def missing(self, runs: Iterable[Run]) -> List[Run]:
        """
        The runs to train, one per digest: those without a score, and those whose score lacks the
        bootstrap samples of a metric that the study began to compare later.
        """
        metrics = self._metrics()
        first: Dict[str, Run] = {}
        for run in runs:
            first.setdefault(run.digest, run)

        def is_complete(digest: str) -> bool:
            score = self._scores.get(digest)
            return score is not None and (
                not score["samples"] or _has_metrics(score, metrics.get(digest, set()))
            )

        return [run for digest, run in first.items() if not is_complete(digest)]

    def add(self, score: Score) -> None:
        """Takes a score, in place of one with the same digest."""
        self._scores[score["digest"]] = score

    def reuse(self, other: "Results") -> None:
        """
        Adds the scores that another study has of the same runs. Those without bootstrap samples of
        a metric that is compared here are left out.
        """
        for digest, names in self._metrics().items():
            score = other._scores.get(digest)
            if digest not in self._scores and score is not None and _has_metrics(score, names):
                self.add(score)

    def _metrics(self) -> Dict[str, Set[str]]:
        """The metrics that are compared, of each run by its digest."""
        metrics = {(row.name, each.name): each.metric for row in self.rows for each in row.columns}
        found: Dict[str, Set[str]] = {}
        for run in self._runs:
            found.setdefault(run["digest"], set()).add(metrics[run["row"], run["column"]])
        return found

    def unknown_metrics(self, digest: str) -> str:
        """
        A sentence about the metrics that are compared, but which the score of a run lacks, because
        their names are misspelt; empty if there are none, or no score.
        """
        score = self._scores.get(digest)
        if score is None:
            return ""
        known = {*score["training"], *(score["evaluation"] or {})}
        unknown = ", ".join(sorted(self._metrics()[digest] - known))
        found = ", ".join(sorted(known))
        return unknown and (
            f"expected the metric {unknown}, found only {found}. Correct it in the study."
        )

    def num_refused(self, other: "Results") -> int:
        """
        The number of scores of the same study in `other` that would fill a cell without a score,
        but were computed with other settings or other data.
        """
        cell = itemgetter("row", "column", "fraction", "seed")
        missing = {cell(run) for run in self._runs if run["digest"] not in self._scores}
        known = {run["digest"] for run in self._runs}
        return sum(
            self.title == other.title
            and run["digest"] in other._scores.keys() - known
            and cell(run) in missing
            for run in other._runs
        )

    def scores(self, row: str, column: str, fraction: Optional[float] = None) -> List[Score]:
        """The scores of a cell in the order of the seeds; of all fractions by default."""
        return [
            self._scores[run["digest"]]
            for run in self._runs
            if (run["row"], run["column"]) == (row, column)
            and fraction in (None, run["fraction"])
            and run["digest"] in self._scores
        ]

    def fractions(self, row: str) -> List[float]:
        """The fractions of a row, ascending."""
        return sorted({run["fraction"] for run in self._runs if run["row"] == row})

    def num_missing(self) -> int:
        """The number of runs of the study without a score, or without a metric that is compared."""
        digests = {run["digest"] for run in self._runs}
        return sum(
            digest not in self._scores or bool(self.unknown_metrics(digest)) for digest in digests
        )

    def num_unused(self) -> int:
        """The number of scores of runs that are not of the study: other settings, or other data."""
        return len(self._scores.keys() - {run["digest"] for run in self._runs})

    def save(self) -> None:
        """Replaces the file. The caller must hold the lock of its folder."""
        content = {
            "title": self.title,
            "command": self.command,
            "rows": [asdict(row) for row in self.rows],
            "runs": self._runs,
            "scores": list(self._scores.values()),
        }
        write_json_rows(self.path, content, "name")

    def _read(self) -> None:
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            self.title, self.command = content["title"], content["command"]
            self.rows = list(map(Row.from_dict, content["rows"]))
            self._runs = content["runs"]
            self._scores = {score["digest"]: score for score in content["scores"]}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigurationError(
                f"{self.path}: expected what elmo-study writes, found {error!r}. Restore the "
                "file, or delete it: runs that have a folder below runs/ are not trained again."
            ) from error


def _has_metrics(score: Score, metrics: Set[str]) -> bool:
    return metrics <= {*score["training"], *(score["samples"] or {})}
