"""Tables of a study: the text of their cells, before they are written as Markdown or LaTeX."""

from dataclasses import dataclass
from typing import Dict, List

from elmo_plugin.analysis.studies.comparison import (
    Cell,
    baseline,
    best_column,
    cell,
    compared_with,
    difference,
    paper_error_reduction,
    validation_score,
)
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row

__all__ = ["Table", "score_tables", "summary_table"]

# A line is the texts of its cells, by the heads of their columns.
_Line = Dict[str, str]
_WORDS = ["", "data", "model"]
_DIFFERENCE = ["difference", "95 %", "fewer errors", "in the paper"]
_HEAD = [
    *_WORDS,
    "paper",
    "score",
    "seeds",
    *_DIFFERENCE,
    "compared with",
    "validation",
    "epochs to baseline",
]


@dataclass(frozen=True)
class Table:
    """
    # Parameters

    head : `List[str]`
    lines : `List[List[str]]`
    num_left : `int`, optional (default = `1`)
        Number of columns with words, which are left-aligned; those after them have numbers.
    """

    head: List[str]
    lines: List[List[str]]
    num_left: int = 1


def score_tables(results: Results) -> List[Table]:
    """
    The tables of a study: one of the rows whose columns are compared, and one of the others.

    Both show scores as means over seeds. The first has a line for each column of a row, with the
    paper's score, ours and its sample standard deviation, the number of seeds, the mean of the best
    scores in validation, the difference from the baseline or from the column that `against` names,
    its interval, and the error reduction, ours and that of the paper. The last cell is the number
    of epochs after which the validation score of the baseline is reached (section 5.4 of the paper
    counts updates), as the mean over the seeds that reach it. A column that has neither a score nor
    one of the paper has no line.
    """
    lines: List[_Line] = []
    for row in results.rows:
        of_row = []
        for fraction in results.fractions(row.name) if row.compare else []:
            of_fraction = _compared(results, row, fraction)
            of_row += _labelled("data", _percentage(fraction), of_fraction)
        lines += _labelled("", row.name, of_row)
    others = [row for row in results.rows if not row.compare]
    tables = [_table(_HEAD, lines), _wide_table(results, others)]
    return [table for table in tables if table.lines]


def summary_table(results: Results) -> Table:
    """
    A line for each row and fraction: the baseline, and the best of the columns that are compared
    with it, by their scores in validation. The paper's error reduction is that of the first column
    that has one. Without a score of both, there is no line.
    """
    lines: List[_Line] = []
    for row in results.rows:
        others = [
            number
            for number, column in enumerate(row.columns)
            if number >= row.num_baselines and column.against is None
        ]
        of_row: List[_Line] = []
        for fraction in results.fractions(row.name) if row.compare and others else []:
            base = baseline(results, row, fraction)
            best = best_column(results, row, others, fraction)
            before, after = (cell(results, row, number, fraction) for number in (base, best))
            if before is None or after is None:
                continue
            line = _difference(results, row, best, fraction)
            line["data"] = _percentage(fraction)
            line["baseline"], line["best model"] = _mean(row, before), _mean(row, after)
            line["seeds"] = f"{len(before.values)}, {len(after.values)}"
            papers = [paper_error_reduction(row, number) for number in others]
            known = [paper for paper in papers if paper is not None]
            line["in the paper"] = f"{100 * known[0]:.1f} %" if known else ""
            of_row.append(line)
        lines += _labelled("", row.name, of_row)
    return _table(["", "data", "baseline", "best model", "seeds", *_DIFFERENCE], lines)


def _labelled(head: str, label: str, lines: List[_Line]) -> List[_Line]:
    """The label is in the first of the lines only."""
    return [{**line, head: "" if number else label} for number, line in enumerate(lines)]


def _compared(results: Results, row: Row, fraction: float) -> List[_Line]:
    """A line for each column of a row."""
    lines = []
    for number, column in enumerate(row.columns):
        found = cell(results, row, number, fraction)
        if found is None and column.paper is None:
            continue
        line = {
            "model": column.name,
            "paper": "" if column.paper is None else f"{column.paper:.1f}",
            "score": "-",
        }
        if found is not None:
            line["score"] = _mean(row, found)
            line["seeds"] = str(len(found.values))
            validation = validation_score(results, row, number, fraction)
            line["validation"] = "" if validation is None else f"{_scale(row) * validation:.2f}"
            line["epochs to baseline"] = _epochs(results, row, number, fraction)
        lines.append({**line, **_difference(results, row, number, fraction)})
    return lines


def _difference(results: Results, row: Row, number: int, fraction: float) -> _Line:
    found = difference(results, row, number, fraction) if number >= row.num_baselines else None
    if found is None:
        return {}
    line = {
        "compared with": row.columns[compared_with(results, row, number, fraction)].name,
        "difference": f"{_scale(row) * found.mean:+.2f}",
    }
    if found.interval is not None:
        low, high = (_scale(row) * bound for bound in found.interval)
        line["95 %"] = f"{low:+.2f} to {high:+.2f}"
    if found.error_reduction is not None:
        line["fewer errors"] = f"{100 * found.error_reduction:.1f} %"
        of_paper = paper_error_reduction(row, number)
        line["in the paper"] = "" if of_paper is None else f"{100 * of_paper:.1f} %"
    return line


def _epochs(results: Results, row: Row, number: int, fraction: float) -> str:
    """`3.5`: the mean over the seeds that reach the baseline's score, and how many do not."""
    goal = validation_score(results, row, baseline(results, row, fraction), fraction)
    scores = results.scores(row.name, row.columns[number].name, fraction)
    histories = [
        score["history"] for score in scores if score["history"] and None not in score["history"]
    ]
    # Scores are assumed to rise: metrics of which lower is better have no number.
    if row.lower_is_better or goal is None or not histories:
        return ""
    reached = [
        next(epoch for epoch, value in enumerate(history, start=1) if value >= goal)
        for history in histories
        if max(history) >= goal
    ]
    missed = len(histories) - len(reached)
    if not reached:
        return "never"
    rest = f" ({missed} of {len(histories)} never)" if missed else ""
    return f"{round(sum(reached) / len(reached), 1):g}{rest}"


def _wide_table(results: Results, rows: List[Row]) -> Table:
    """A line for each row and fraction; the scores of its columns, and of the paper, in cells."""
    lines, head = [], [*_WORDS]
    for row in rows:
        of_row = []
        for fraction in results.fractions(row.name):
            line = {}
            for number, column in enumerate(row.columns):
                head += [f"{column.name}, paper", column.name]
                found = cell(results, row, number, fraction)
                if found is not None:
                    line[column.name] = _mean(row, found)
                    line["seeds"] = str(len(found.values))
                if column.paper is not None:
                    line[f"{column.name}, paper"] = f"{column.paper:.1f}"
            if line:
                of_row.append({"data": _percentage(fraction), **line})
        lines += _labelled("", row.name, of_row)
    return _table([*dict.fromkeys(head), "seeds"], lines)


def _mean(row: Row, found: Cell) -> str:
    deviation = "" if found.deviation is None else f" ± {_scale(row) * found.deviation:.2f}"
    return f"{_scale(row) * found.mean:.2f}{deviation}"


def _table(head: List[str], lines: List[_Line]) -> Table:
    """Without the columns in which no line has a text; `data` is left out if all have 100 %."""
    used = [
        name
        for name in head
        if any(line.get(name) for line in lines)
        and not (name == "data" and {line[name] for line in lines} <= {"", "100 %"})
    ]
    num_left = len([name for name in used if name in _WORDS])
    return Table(used, [[line.get(name, "") for name in used] for line in lines], num_left)


def _percentage(fraction: float) -> str:
    return f"{100 * fraction:g} %"


def _scale(row: Row) -> float:
    return 100.0 if row.percent else 1.0
