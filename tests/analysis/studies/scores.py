"""Results of runs that nobody trained."""

from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Column, Row, Run, Study


def study(*columns, rows=("NER",), seeds=(1, 2), fractions=(1,), **settings):
    """Columns are names, pairs of a name and the paper's score, or made already."""
    made = [
        Row(
            name,
            tuple(map(_column, columns)),
            **{
                "percent": True,
                "lower_is_better": False,
                "compare": True,
                "num_baselines": 1,
                **settings,
            },
        )
        for name in rows
    ]
    runs = [
        Run(row.name, column.name, fraction, seed, "test.txt", {}, f"{row.name}{n}{fraction}{seed}")
        for row in made
        for n, column in enumerate(row.columns)
        for fraction in fractions
        for seed in seeds
    ]
    return Study("A title", tuple(made), tuple(runs))


def _column(column):
    if isinstance(column, Column):
        return column
    name, paper = column if isinstance(column, tuple) else (column, None)
    return Column(name, "f1", paper)


def score(run, value, samples=None, history=(), group_samples=None):
    groups = {} if group_samples is None else {"group_samples": {"f1": group_samples}}
    return {
        "name": run.name,
        "digest": run.digest,
        "fraction": run.fraction,
        "seed": run.seed,
        "minutes": 1.0,
        "training": {"f1": 0.0},
        "history": list(history),
        "evaluation": {"f1": value},
        "samples": None if samples is None else {"f1": samples},
        # Older versions had none.
        **groups,
    }


def results(path, described, values, samples=None, histories=None):
    """A score for each run with a value, in their order."""
    found = Results(path)
    found.set_study(described)
    for number, (run, value) in enumerate(zip(described.runs, values)):
        if value is not None:
            of_samples = None if samples is None else samples[number]
            history = () if histories is None else histories[number]
            found.add(score(run, value, of_samples, history))
    return found
