"""Tables of a study: the text of their cells, before they are written as Markdown or LaTeX."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from elmo_plugin.analysis.studies.comparison import Cell, Difference, baseline, cell, difference
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row

__all__ = ["Table", "epoch_table", "score_tables"]


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
    The tables of a study, one for all rows that have the same columns. Each column has the paper's
    score, mean and standard deviation over seeds, and the number of seeds; each that is not a
    baseline also the difference from the baseline or the column it is compared with, its interval,
    and the error reduction. A line with neither a score nor one of the paper is left out.
    """
    groups: Dict[Tuple[Tuple[str, Optional[str]], ...], List[Row]] = {}
    for row in results.rows:
        names = tuple((column.name, column.against) for column in row.columns)
        groups.setdefault(names, []).append(row)
    return [_table(results, rows) for rows in groups.values()]


def epoch_table(results: Results) -> Optional[Table]:
    """
    How many epochs each column needs to reach the baseline's best score in validation, as means
    over seeds; section 5.4 of the paper counts updates. `None` if there are no such scores.
    """
    lines = []
    for row in results.rows:
        # `_epochs` assumes that scores rise: metrics of which lower is better are left out.
        is_shown = row.compare and not row.lower_is_better
        for fraction in results.fractions(row.name) if is_shown else []:
            base = baseline(results, row, fraction)
            best = [max(history) for history in _histories(results, row, base, fraction)]
            if not best:
                continue
            goal = sum(best) / len(best)
            needed = [
                _epochs(results, row, number, fraction, goal) for number in range(len(row.columns))
            ]
            line = [row.name, f"{100 * fraction:g} %", row.columns[base].name]
            lines.append([*line, f"{(100 if row.percent else 1) * goal:.2f}", "; ".join(needed)])
    if not lines:
        return None
    head = ["", "data", "baseline", "its best in validation", "epochs until it is reached"]
    return Table(head, lines)


def _histories(results: Results, row: Row, number: int, fraction: float) -> List[List[float]]:
    scores = results.scores(row.name, row.columns[number].name, fraction)
    return [
        score["history"] for score in scores if score["history"] and None not in score["history"]
    ]


def _epochs(results: Results, row: Row, number: int, fraction: float, goal: float) -> str:
    """`ELMo 3.5`: the mean over the seeds that reach the goal, and how many do not."""
    histories = _histories(results, row, number, fraction)
    reached = [
        next(epoch for epoch, value in enumerate(history, start=1) if value >= goal)
        for history in histories
        if max(history) >= goal
    ]
    mean = f"{round(sum(reached) / len(reached), 1):g}" if reached else "never"
    missed = len(histories) - len(reached)
    rest = f" ({missed} of {len(histories)} never)" if reached and missed else ""
    return f"{row.columns[number].name} {mean if histories else '-'}{rest}"


def _table(results: Results, rows: List[Row]) -> Table:
    fractions = {row.name: results.fractions(row.name) for row in rows}
    has_fractions = any(found != [1] for found in fractions.values())
    has_paper = any(column.paper is not None for row in rows for column in row.columns)
    columns = rows[0].columns
    head = ["", *(["data"] if has_fractions else [])]
    for number, column in enumerate(columns):
        head += [f"{column.name}, paper"] if has_paper else []
        head += [column.name]
        difference_from = f"difference from {column.against}" if column.against else "difference"
        head += [difference_from, "95 %", "fewer errors"] if number else []
    lines = []
    for row in rows:
        for fraction in fractions[row.name]:
            cells = [cell(results, row, number, fraction) for number in range(len(columns))]
            if not has_paper and cells == [None] * len(columns):
                continue
            line = [row.name, *([f"{100 * fraction:g} %"] if has_fractions else [])]
            for number, column in enumerate(row.columns):
                if has_paper:
                    line.append("" if column.paper is None else f"{column.paper:.1f}")
                line.append(_score(row, cells[number]))
                if number:
                    is_compared = row.compare and number >= row.num_baselines
                    found = difference(results, row, number, fraction) if is_compared else None
                    line += _difference(row, found)
            lines.append(line)
    used = [n for n in range(len(head)) if n == 0 or any(line[n] for line in lines)]
    return Table([head[n] for n in used], [[line[n] for n in used] for line in lines])


def _score(row: Row, found: Optional[Cell]) -> str:
    if found is None:
        return "-"
    scale = 100 if row.percent else 1
    mean = f"{scale * found.mean:.2f}"
    if found.deviation is None:
        return f"{mean} (1 seed)"
    return f"{mean} ± {scale * found.deviation:.2f} ({len(found.values)})"


def _difference(row: Row, found: Optional[Difference]) -> List[str]:
    if found is None:
        return ["", "", ""]
    scale = 100 if row.percent else 1
    interval = ""
    if found.interval is not None:
        low, high = (scale * bound for bound in found.interval)
        interval = f"{low:+.2f} to {high:+.2f}"
    reduction = "" if found.error_reduction is None else f"{100 * found.error_reduction:.1f} %"
    return [f"{scale * found.mean:+.2f}", interval, reduction]
