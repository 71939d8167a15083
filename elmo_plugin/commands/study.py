"""
Train and evaluate the experiments of a study, each with several seeds, and write the tables that
compare them.

STUDY is a jsonnet file, such as those in experiments/studies; docs/studies.md describes it. OUT
receives results.json, from which `elmo report` draws plots, and tables.md. A run that has a score
in OUT/results.json is not trained again, a run that was stopped is continued, and a run that fails
is reported and does not stop the others. Seeds and rows can be added later; the same command then
trains only those.

example:
    %(prog)s experiments/studies/table1.jsonnet -s out/table1
    %(prog)s experiments/studies/table1.jsonnet -s out/table1 --num-workers 2 --only NER SST
    %(prog)s experiments/studies/table1.jsonnet -s out/table1 --show
    %(prog)s experiments/studies/figure2.jsonnet -s out/figure2 --reuse out/table1/results.json
"""

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

from elmo_plugin.analysis.studies.comparison import shares
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Run, Study, check_inputs, read_study
from elmo_plugin.analysis.studies.tables import score_tables, summary_table
from elmo_plugin.analysis.studies.train_run import folder_of, train_all
from elmo_plugin.commands.arguments import PositiveInt, flag, option, positional
from elmo_plugin.commands.command import say
from elmo_plugin.commands.metrics import markdown_table
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.folder_lock import lock_folder

STOPPED = "stopped. Run the same command again to continue."


@dataclass(kw_only=True)
class Options:
    study: str = positional("STUDY", "jsonnet file of the study")
    serialization_dir: Path = option(
        "folder for results, logs and trained models", short="-s", metavar="OUT", required=True
    )
    only: Optional[List[str]] = option(
        "train only runs whose name contains one of these; the name of a run has its row, "
        "column, share of the data if it is not all, and seed: 'NER, ELMo, 10 %%, seed 3'",
        metavar="TEXT",
    )
    num_workers: PositiveInt = option("train N runs in parallel", 1)
    discard: bool = flag("delete the folder of a run once it has a score")
    reuse: Optional[List[Path]] = option(
        "results.json of other studies; runs with the same settings and data are not trained again",
        metavar="RESULTS",
    )
    show: bool = flag("train nothing, only write the tables of OUT/results.json")


def run(args: Options) -> str:
    out = args.serialization_dir
    if "," in str(out):
        raise ConfigurationError(
            f"-s {out}: expected a path without commas: `allennlp evaluate` would split it there."
        )
    if args.show:
        # Writes no results, so a study can be shown while it runs.
        return _write_tables(out, Results(_existing(out / "results.json")))
    study = read_study(args.study)
    lock = lock_folder(out)
    try:
        results = _results(args, study)
        runs = _checked_runs(args, study, results)
        # A study that cannot be trained changes nothing.
        results.save()
        failed = _train(args, runs, results)
        report = _write_tables(out, results)
    finally:
        lock.release()
    if failed:
        raise ConfigurationError(
            f"{len(failed)} of the runs failed or lack the metric of the study "
            f"({'; '.join(failed)}). Their logs are in {out}/runs; the same command continues them."
        )
    return report


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise ConfigurationError(f"{path}: expected the results.json of a study, found none.")
    return path


def _results(args: Options, study: Study) -> Results:
    results = Results(args.serialization_dir / "results.json")
    command = ["elmo", "study", args.study, "-s", str(args.serialization_dir)]
    results.set_study(study, shlex.join(command))
    for path in args.reuse or ():
        number = results.reuse(Results(_existing(path)))
        say(f"--reuse {path}: scores of the same settings and data: {number}")
    return results


def _checked_runs(args: Options, study: Study, results: Results) -> List[Run]:
    chosen = [
        run
        for run in study.runs
        if args.only is None or any(text.lower() in run.name.lower() for text in args.only)
    ]
    if not chosen:
        raise ConfigurationError(
            f"--only {' '.join(args.only or ())}: found in no run's name, such as "
            f"{study.runs[0].name!r}."
        )
    runs = results.missing(chosen)
    for run in chosen:
        if unknown := results.unknown_metrics(run.digest):
            raise ConfigurationError(f"{args.study}: {run.name}: {unknown}")
    check_inputs(runs)
    return runs


def _train(args: Options, runs: List[Run], results: Results) -> List[str]:
    """Trains and evaluates runs. Returns the names of those that failed or lack the metric."""
    out = args.serialization_dir
    unfinished = []

    def tell(run: Run) -> None:
        say(f"{run.name}: {folder_of(run, out)}")

    outcomes = train_all(runs, out, args.num_workers, tell)
    for number, (run, outcome) in enumerate(outcomes, start=1):
        place = f"{number} of {len(runs)}: {run.name}"
        if isinstance(outcome, Exception):
            unfinished.append(run.name)
            say(f"{place}: {outcome}")
            continue
        results.add(outcome)
        results.save()
        if unknown := results.unknown_metrics(run.digest):
            unfinished.append(run.name)
            say(f"{place}: {unknown} The model is kept.")
            continue
        say(f"{place}: finished, {outcome['minutes']:.1f} minutes")
        if args.discard:
            shutil.rmtree(folder_of(run, out))
    return unfinished


def _write_tables(out: Path, results: Results) -> str:
    tables = [*score_tables(results), summary_table(shares(results, *results.rows))]
    markdown = "\n\n".join(markdown_table(t.head, t.lines, t.num_left) for t in tables if t.lines)
    with atomic_write(out / "tables.md") as unfinished:
        unfinished.write_text(f"# {results.title}\n\n{markdown}\n", encoding="utf-8")
    missing = results.num_missing()
    return f"{markdown}\n\n{out}: runs without a score yet: {missing}" if missing else markdown
