import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Set

from elmo_plugin.analysis.studies.study import Row, Run, Study
from elmo_plugin.analysis.studies.train_run import SAMPLES, Score
from elmo_plugin.util.atomic_write import write_json_rows
from elmo_plugin.util.errors import ConfigurationError


class Results:
    """
    The scores of a study in `results.json`: all that tables and plots need. Raises
    `ConfigurationError` if the file exists but was not written by `save`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.title, self.command = "", ""
        self.rows: List[Row] = []
        # For each run, its cell in the table, its seed, and the digest that finds its score.
        self._runs: List[Dict[str, Any]] = []
        self._scores: Dict[str, Score] = {}
        if path.exists():
            self._read()

    def set_study(self, study: Study, command: str = "") -> None:
        """Adopts a study and the command that trains it. Keeps scores of other runs."""
        self.title, self.rows, self.command = study.title, list(study.rows), command
        fields = ("row", "column", "fraction", "seed", "digest")
        self._runs = [{name: getattr(run, name) for name in fields} for run in study.runs]

    def missing(self, runs: Iterable[Run]) -> List[Run]:
        """The runs to train, one per digest."""
        missing = self._missing(self._scores)
        first: Dict[str, Run] = {}
        for run in runs:
            if run.digest in missing:
                first.setdefault(run.digest, run)
        return list(first.values())

    def add(self, score: Score) -> None:
        """Adds or replaces a score. Keeps the bootstrap samples of the study's metrics only."""
        metrics = sorted({column.metric for row in self.rows for column in row.columns})
        for kind in SAMPLES:
            if (samples := score.get(kind)) is not None:
                score = {**score, kind: {name: samples.get(name) for name in metrics}}
        self._scores[score["digest"]] = score

    def reuse(self, other: "Results") -> int:
        """Copies missing scores that have all metrics from another study. Returns how many."""
        missing = self._missing(self._scores) - self._missing(other._scores)
        # In the order of the study.
        found = [digest for digest in self._metrics() if digest in missing]
        self._scores.update((digest, other._scores[digest]) for digest in found)
        return len(found)

    def _missing(self, scores: Dict[str, Score]) -> Set[str]:
        """The digests of the study's runs that lack a score or a metric that is compared."""
        missing = set()
        for digest, names in self._metrics().items():
            score = scores.get(digest, {"training": {}, "evaluation": {}, "samples": None})
            known = {*score["training"], *(score["evaluation"] or {})}
            sampled = {*score["training"], *(score["samples"] or known)}
            if not names <= known & sampled:
                missing.add(digest)
        return missing

    def _metrics(self) -> Dict[str, Set[str]]:
        """The metrics that are compared, by the digest of the run."""
        metrics = {(row.name, each.name): each.metric for row in self.rows for each in row.columns}
        found: Dict[str, Set[str]] = {}
        for run in self._runs:
            found.setdefault(run["digest"], set()).add(metrics[run["row"], run["column"]])
        return found

    def unknown_metrics(self, digest: str) -> str:
        """A message about misspelt metrics, which the run's score lacks; empty if none."""
        score = self._scores.get(digest)
        if score is None:
            return ""
        known = {*score["training"], *(score["evaluation"] or {})}
        unknown = ", ".join(sorted(self._metrics()[digest] - known))
        found = ", ".join(sorted(known))
        return unknown and (
            f"expected the metric {unknown}, found only {found}. Correct it in the study."
        )

    def scores(self, row: str, column: str, fraction: Optional[float] = None) -> List[Score]:
        """The scores of a cell, in the order of the seeds; by default for all fractions."""
        return [
            self._scores[run["digest"]]
            for run in self._runs
            if (run["row"], run["column"]) == (row, column)
            and fraction in (None, run["fraction"])
            and run["digest"] in self._scores
        ]

    def fractions(self, row: str) -> List[float]:
        """The row's shares of the training data, ascending."""
        return sorted({run["fraction"] for run in self._runs if run["row"] == row})

    def num_missing(self) -> int:
        """Counts the study's runs that lack a score, or a metric that is compared."""
        return len(self._missing(self._scores))

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
                f"{self.path}: expected what elmo study writes, found {error!r}. Restore the "
                "file, or delete it: runs that have a folder below runs/ are not trained again."
            ) from error
