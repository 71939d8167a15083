"""Tables of a study: the text of their cells, before they are written as Markdown or LaTeX."""

import math
import statistics
from dataclasses import dataclass, replace
from typing import Dict, List

from elmo_plugin.analysis.studies.comparison import (
    Cell,
    baseline,
    best_column,
    cell,
    difference,
    paper_error_reduction,
    validation_score,
)
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row

# A line is the texts of its cells, by the heads of their columns.
_Line = Dict[str, str]
_WORDS = ["", "data", "model"]
_DIFFERENCE = ["difference", "95 %", "error reduction", "error reduction, paper"]
_HEAD = [
    *_WORDS,
    "paper",
    "score",
    "seeds",
    *_DIFFERENCE,
    "compared with",
    "best on dev",
    "epochs to baseline",
]


@dataclass(frozen=True)
class Table:
    """A table of text, for Markdown, LaTeX or HTML."""

    head: List[str]
    lines: List[List[str]]
    #: Number of columns with words, which are left-aligned; those after them have numbers.
    num_left: int = 1


def score_tables(results: Results) -> List[Table]:
    """
    The tables of a study: one of the rows whose columns are compared, and one of the others.

    Both show scores as means over seeds. The first has a line for each column of a row, with the
    paper's score, ours and its sample standard deviation, the number of seeds, the mean of the best
    scores on dev, the difference from the baseline or from the column that `against` names,
    its interval, and the error reduction, ours and that of the paper. The last cell is the number
    of epochs after which the best score of the baseline on dev is reached (section 5.4 of the paper
    counts updates), as the mean over the seeds that reach it. Of a row with several shares of the
    data, those without any score are left out if others have one, and only all data is beside the
    paper's scores.
    """
    lines: List[_Line] = []
    for row in results.rows:
        of_row = []
        for fraction in results.fractions(row.name) if row.compare else []:
            of_fraction = _compared(results, _of_share(results, row, fraction), fraction)
            of_row += _labelled("data", _percentage(fraction), of_fraction)
        lines += _labelled("", row.name, of_row)
    others = [row for row in results.rows if not row.compare]
    tables = [_table(_HEAD, lines), _wide_table(results, others)]
    return [table for table in tables if table.lines]


def summary_table(results: Results) -> Table:
    """
    A line for each row and fraction: the baseline, and the best of the columns that are compared
    with it, by their best scores on dev. The paper's error reduction is that of the first column
    that has one. A row gets no line if the baseline or all other columns lack a score, or if
    several columns have a score but not all of them one on dev.
    """
    lines: List[_Line] = []
    for row in results.rows:
        of_row = [
            {**line, "data": _percentage(fraction)}
            for fraction in results.fractions(row.name)
            if row.compare
            and (line := _summary(results, _of_share(results, row, fraction), fraction))
        ]
        lines += _labelled("", row.name, of_row)
    head = ["", "data", "baseline", "score", "best model", "its score", "seeds"]
    return _table([*head, *_DIFFERENCE], lines)


def _summary(results: Results, row: Row, fraction: float) -> _Line:
    candidates = [
        number
        for number, column in enumerate(row.columns)
        if number >= row.num_baselines and column.against is None
    ]
    others = [n for n in candidates if cell(results, row, n, fraction) is not None]
    on_dev = [validation_score(results, row, number, fraction) for number in others]
    if not others or (len(others) > 1 and None in on_dev):
        return {}
    numbers = baseline(results, row, fraction), best_column(results, row, others, fraction)
    before, after = (cell(results, row, number, fraction) for number in numbers)
    if before is None or after is None:
        return {}
    papers = [paper_error_reduction(row, number) for number in candidates]
    paper = next((value for value in papers if value is not None), None)
    return {
        "baseline": row.columns[numbers[0]].name,
        "score": _mean(row, before),
        "best model": row.columns[numbers[1]].name,
        "its score": _mean(row, after),
        "seeds": f"{len(before.values)}, {len(after.values)}",
        **_difference(results, row, numbers[1], fraction),
        "error reduction, paper": "" if paper is None else f"{100 * paper:.1f} %",
    }


def _of_share(results: Results, row: Row, fraction: float) -> Row:
    """Without the paper's scores if they are not of this share: the paper has those of all data."""
    if fraction == 1 or len(results.fractions(row.name)) == 1:
        return row
    return replace(row, columns=tuple(replace(column, paper=None) for column in row.columns))


def _labelled(head: str, label: str, lines: List[_Line]) -> List[_Line]:
    """The label is in the first of the lines only."""
    return [{**line, head: "" if number else label} for number, line in enumerate(lines)]


def _compared(results: Results, row: Row, fraction: float) -> List[_Line]:
    """A line for each column of a row."""
    lines = []
    cells = [cell(results, row, number, fraction) for number in range(len(row.columns))]
    if not any(cells) and any(results.scores(row.name, column.name) for column in row.columns):
        return []
    for number, (column, found) in enumerate(zip(row.columns, cells)):
        line = {
            "model": column.name,
            "paper": "" if column.paper is None else _as_printed(column.paper),
            "score": "-",
        }
        if found is not None:
            line["score"] = _mean(row, found)
            line["seeds"] = str(len(found.values))
            on_dev = validation_score(results, row, number, fraction)
            line["best on dev"] = "" if on_dev is None else f"{row.scale * on_dev:.2f}"
            line["epochs to baseline"] = _epochs(results, row, number, fraction)
        lines.append({**line, **_difference(results, row, number, fraction)})
    return lines


def _difference(results: Results, row: Row, number: int, fraction: float) -> _Line:
    found = difference(results, row, number, fraction) if number >= row.num_baselines else None
    if found is None:
        return {}
    line = {
        "compared with": row.columns[found.base].name,
        "difference": f"{row.scale * found.mean:+.2f}",
    }
    if found.interval is not None:
        low, high = (row.scale * bound for bound in found.interval)
        line["95 %"] = f"{low:+.2f} to {high:+.2f}"
    if found.error_reduction is not None:
        line["error reduction"] = f"{100 * found.error_reduction:.1f} %"
        of_paper = paper_error_reduction(row, number)
        line["error reduction, paper"] = "" if of_paper is None else f"{100 * of_paper:.1f} %"
    return line


def _as_printed(score: float) -> str:
    """The paper's scores have one decimal, those of NER two."""
    return max(f"{score:.1f}", f"{score:g}", key=len)


def _epochs(results: Results, row: Row, number: int, fraction: float) -> str:
    """`3.5`, the mean over the seeds; `3.5 (2 of 3)` if only two of three reach the baseline."""
    of_baseline = _histories(results, row, baseline(results, row, fraction), fraction)
    histories = _histories(results, row, number, fraction)
    # Scores are assumed to rise: metrics of which lower is better have no number.
    if row.lower_is_better or not of_baseline or not histories:
        return ""
    goal = statistics.mean(map(max, of_baseline))
    reached = [
        next(epoch for epoch, value in enumerate(history, start=1) if value >= goal)
        for history in histories
        if max(history) >= goal
    ]
    if not reached:
        return "never"
    mean = f"{round(statistics.mean(reached), 1):g}"
    everyone = len(reached) == len(histories)
    return mean if everyone else f"{mean} ({len(reached)} of {len(histories)})"


def _histories(results: Results, row: Row, number: int, fraction: float) -> List[List[float]]:
    scores = results.scores(row.name, row.columns[number].name, fraction)
    histories = [score["history"] for score in scores]
    return [
        [value if math.isfinite(value) else -math.inf for value in history]
        for history in histories
        if history and None not in history
    ]


def _wide_table(results: Results, rows: List[Row]) -> Table:
    """A line for each row and fraction; the scores of its columns, and of the paper, in cells."""
    lines: List[_Line] = []
    # Keys that differ from those of the other cells, whatever a column is called.
    head: Dict[str, str] = {}
    for row in rows:
        of_row = []
        for fraction in results.fractions(row.name):
            line, seeds = {}, []
            for number, column in enumerate(row.columns):
                paper, score = f"paper: {column.name}", f"score: {column.name}"
                head.update({paper: f"{column.name}, paper", score: column.name})
                found = cell(results, row, number, fraction)
                if found is not None:
                    line[score] = _mean(row, found)
                    seeds.append(str(len(found.values)))
                if column.paper is not None:
                    line[paper] = _as_printed(column.paper)
            if line:
                # One number if all columns have as many.
                line["seeds"] = ", ".join(seeds if len(set(seeds)) > 1 else seeds[:1])
                of_row.append({"data": _percentage(fraction), **line})
        lines += _labelled("", row.name, of_row)
    table = _table([*_WORDS, *head, "seeds"], lines)
    return Table([head.get(name, name) for name in table.head], table.lines, table.num_left)


def _mean(row: Row, found: Cell) -> str:
    deviation = "" if found.deviation is None else f" ± {row.scale * found.deviation:.2f}"
    return f"{row.scale * found.mean:.2f}{deviation}"


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
