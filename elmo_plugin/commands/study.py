import shlex
import shutil
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from elmo_plugin.analysis.studies.checks import check_experiments
from elmo_plugin.analysis.studies.plots import draw_scores
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Run, Study, check_inputs, read_study
from elmo_plugin.analysis.studies.tables import Table, score_tables, summary_table
from elmo_plugin.analysis.studies.train_all import Outcome, train_all, train_all_with_ray
from elmo_plugin.analysis.studies.train_run import folder_of
from elmo_plugin.commands.bilm_arguments import positive_number
from elmo_plugin.commands.command import add_ray_arguments, check_ray_arguments, say
from elmo_plugin.commands.latex import latex_table
from elmo_plugin.commands.markdown import around_tables, markdown_table, replace_tables
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.folder_lock import lock_folder
from elmo_plugin.util.progress import progress

DESCRIPTION = """\
Train and evaluate the experiments of a study, each with several seeds, and write the tables and
plots that compare them.

STUDY is a jsonnet file, such as those in experiments/studies. All its experiments are built before
the first one is trained. Each run is a process of its own, `allennlp train` and `allennlp
evaluate`, with its log and its folder in OUT/runs. A run that has a score in OUT/results.json is
not trained again, a run that was stopped is continued, and a run that fails is reported and does
not stop the others. Seeds and rows can be added later; the same command then trains only those.

OUT receives results.json, tables.md, tables.tex, scores.svg and scores.png. The interval of a
difference is at 95 %, by a paired bootstrap over the evaluated instances and, for several seeds,
Student's t distribution.
"""

EPILOG = """\
example:
    %(prog)s experiments/studies/table1.jsonnet -s out/table1
    %(prog)s experiments/studies/table1.jsonnet -s out/table1 --num-workers 2 --only NER SST
    %(prog)s experiments/studies/table1.jsonnet -s out/table1 --show
    %(prog)s experiments/studies/figure2.jsonnet -s out/figure2 --reuse out/table1/results.json
"""

STOPPED = "stopped. Run the same command again to continue."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="jsonnet file of the study")
    parser.add_argument(
        "-s",
        "--serialization-dir",
        type=expanded,
        metavar="OUT",
        required=True,
        help="folder for results, logs and trained models",
    )
    parser.add_argument(
        "--only",
        metavar="TEXT",
        nargs="+",
        action="extend",
        help="train only runs whose name contains one of these; the name of a run has its row, "
        "column, share of the data if it is not all, and seed: 'NER, ELMo, 10 %%, seed 3'",
    )
    parser.add_argument(
        "--num-workers",
        type=positive_number,
        metavar="N",
        help="train N runs in parallel (default: 1)",
    )
    parser.add_argument(
        "--discard", action="store_true", help="delete the folder of a run once it has a score"
    )
    parser.add_argument(
        "--reuse",
        metavar="RESULTS",
        nargs="+",
        action="extend",
        default=[],
        help="results.json of other studies; runs with the same settings and data are not trained "
        "again",
    )
    parser.add_argument("--show", action="store_true", help="train nothing, only write tables")
    parser.add_argument(
        "--update",
        type=expanded,
        metavar="FILE",
        help="also replace the tables of the study in a Markdown file, between the lines "
        "<!-- study NAME --> and <!-- /study -->; between <!-- summary NAME --> and "
        "<!-- /summary -->, a table of each row's baseline and best model",
    )
    ray = add_ray_arguments(parser, "train each run as a task")
    ray.add_argument("--gpus", type=float, help="GPUs reserved for each task (default: 0)")


def run(args: Namespace) -> str:
    check_ray_arguments(args)
    if args.update is not None:
        if not Path(args.update).is_file():
            raise ConfigurationError(f"--update {args.update}: no such file.")
        _tables_in(Path(args.update), Path(args.study).stem)
    out = Path(args.serialization_dir)
    if "," in str(out):
        raise ConfigurationError(
            f"-s {out}: expected a path without commas: `allennlp evaluate` would split it there."
        )
    is_kept = args.show and (out / "results.json").exists()
    if is_kept and not args.reuse:
        # Writes no results, so a study can be shown while it runs.
        return _write_tables(args, Results(out / "results.json"), out)
    # Kept results can be shown without the corpora.
    study = None if is_kept else read_study(args.study)
    lock = lock_folder(out)
    try:
        results = _results(args, study)
        runs = [] if args.show or study is None else _checked_runs(args, study, results)
        # A study that cannot be trained changes nothing.
        results.save()
        failed = [] if study is None else _train(args, study, runs, results)
        report = _write_tables(args, results, out)
    finally:
        lock.release()
    if failed:
        raise ConfigurationError(" ".join(failed))
    return report


def _results(args: Namespace, study: Optional[Study]) -> Results:
    """The results in the folder, with those to reuse; without a study, of the runs known there."""
    results = Results(Path(args.serialization_dir) / "results.json")
    if study is not None:
        command = ["allennlp", "elmo-study", args.study, "-s", str(args.serialization_dir)]
        results.set_study(study, shlex.join(command))
        unused = results.num_unused()
        if unused:
            say(
                f"{results.path}: scores of other settings or data than those of the study now, "
                f"which are kept but not shown: {unused}"
            )
    for path in map(Path, args.reuse):
        if not path.is_file():
            raise ConfigurationError(f"--reuse {path}: expected a results.json, found none.")
        other = Results(path)
        results.reuse(other)
        refused = results.num_refused(other)
        if refused:
            hint = (
                "" if study else f" Without --show, they are compared with {args.study} as it is."
            )
            say(
                f"--reuse {path}: scores of other settings or data than the runs of "
                f"{args.study if study else results.path}, which are left out: {refused}.{hint}"
            )
    return results


def _checked_runs(args: Namespace, study: Study, results: Results) -> List[Run]:
    """The runs to train: those without a score, if their experiments can be built."""
    chosen = [
        run
        for run in study.runs
        if args.only is None or any(text.lower() in run.name.lower() for text in args.only)
    ]
    if not chosen:
        raise ConfigurationError(
            f"--only {' '.join(args.only)}: found in no run's name, such as {study.runs[0].name!r}."
        )
    runs = results.missing(chosen)
    for run in chosen:
        if unknown := results.unknown_metrics(run.digest):
            raise ConfigurationError(f"{args.study}: {run.name}: {unknown}")
    if runs:
        say(f"Runs to train: {len(runs)}. Building their experiments first.")
        check_inputs(runs)
        with progress("experiments") as update:
            check_experiments(runs, lambda run: update(1))
    return runs


def _train(args: Namespace, study: Study, runs: List[Run], results: Results) -> List[str]:
    """Trains and evaluates runs. Returns a sentence about those that failed, if there are any."""
    out = Path(args.serialization_dir)
    failed, unmeasured = [], []
    for number, (run, outcome) in enumerate(_outcomes(args, study, runs, out), start=1):
        if isinstance(outcome, Exception):
            failed.append(run.name)
            say(f"{number} of {len(runs)}: {run.name}: {outcome}")
            continue
        results.add(outcome)
        results.save()
        if unknown := results.unknown_metrics(run.digest):
            unmeasured.append(run.name)
            say(f"{number} of {len(runs)}: {run.name}: {unknown} The model is kept.")
            continue
        say(f"{number} of {len(runs)}: {run.name}: finished, {outcome['minutes']:.1f} minutes")
        if args.discard:
            shutil.rmtree(folder_of(run, out))
    sentences = []
    if failed:
        sentences.append(
            f"{len(failed)} of the runs failed ({'; '.join(failed)}). Their logs are in "
            f"{out}/runs; the same command continues them."
        )
    if unmeasured:
        sentences.append(
            f"{len(unmeasured)} of the runs lack the metric of the study "
            f"({'; '.join(unmeasured)}). Correct it in {args.study}."
        )
    return sentences


def _outcomes(
    args: Namespace, study: Study, runs: List[Run], out: Path
) -> Iterator[Tuple[Run, Outcome]]:
    metrics = sorted({column.metric for row in study.rows for column in row.columns})
    if args.ray is not None:
        address = args.ray or None
        yield from train_all_with_ray(runs, out, metrics, address, args.cpus or 1, args.gpus or 0)
    else:

        def tell(run: Run) -> None:
            say(f"{run.name}: {folder_of(run, out)}")

        yield from train_all(runs, out, metrics, args.num_workers or 1, tell)


def _write_tables(args: Namespace, results: Results, out: Path) -> str:
    tables = score_tables(results)
    markdown = "\n\n".join(map(_markdown, tables))
    latex = "\n\n".join(latex_table(t.head, t.lines, t.num_left) for t in tables)
    contents = {"tables.md": f"# {results.title}\n\n{markdown}\n", "tables.tex": f"{latex}\n"}
    for name, content in contents.items():
        with atomic_write(out / name) as unfinished:
            unfinished.write_text(content, encoding="utf-8")
    draw_scores(results, [out / "scores.svg", out / "scores.png"])
    if args.update is not None:
        texts = {"study": markdown, "summary": _markdown(summary_table(results))}
        path, name = Path(args.update), Path(args.study).stem
        for kind in _tables_in(path, name):
            replace_tables(path, f"<!-- {kind} {name} -->", f"<!-- /{kind} -->", texts[kind])
    missing = results.num_missing()
    return f"{markdown}\n\n{out}: runs without a score yet: {missing}" if missing else markdown


def _markdown(table: Table) -> str:
    return markdown_table(table.head, table.lines, table.num_left) if table.lines else ""


def _tables_in(path: Path, study: str) -> List[str]:
    """Which tables of a study a Markdown file has: its scores, its summary or both."""
    text = path.read_text(encoding="utf-8")
    kinds = [kind for kind in ("study", "summary") if f"<!-- {kind} {study} -->" in text]
    for kind in kinds:
        around_tables(path, f"<!-- {kind} {study} -->", f"<!-- /{kind} -->")
    if not kinds:
        raise ConfigurationError(
            f"{path}: expected one line <!-- study {study} --> or <!-- summary {study} -->."
        )
    return kinds
