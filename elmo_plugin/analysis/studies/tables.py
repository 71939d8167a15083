"""Tables of a study: what their cells say, without a format."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from elmo_plugin.analysis.studies.comparison import Cell, Difference, cell, difference
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Row

__all__ = ["Table", "score_tables"]

_COMPARED = ["difference", "95 %", "fewer errors"]


@dataclass(frozen=True)
class Table:
    """
    # Parameters

    head : `List[str]`
    lines : `List[List[str]]`
    """

    head: List[str]
    lines: List[List[str]]


def score_tables(results: Results) -> List[Table]:
    """
    The tables of a study, one for all rows that have the same columns. Each column has the paper's
    score, mean and standard deviation over seeds, and the number of seeds; each but the first also
    the difference from the first, its interval, and the share of errors that it saves.
    """
    groups: Dict[Tuple[str, ...], List[Row]] = {}
    for row in results.rows:
        names = tuple(column.name for column in row.columns)
        groups.setdefault(names, []).append(row)
    return [_table(results, rows) for rows in groups.values()]


def _table(results: Results, rows: List[Row]) -> Table:
    fractions = {row.name: results.fractions(row.name) for row in rows}
    has_fractions = any(found != [1] for found in fractions.values())
    has_paper = any(column.paper is not None for row in rows for column in row.columns)
    columns = rows[0].columns
    head = ["", *(["data"] if has_fractions else [])]
    for number, column in enumerate(columns):
        head += [f"{column.name}, paper"] if has_paper else []
        head += [column.name]
        head += _COMPARED if number else []
    lines = []
    for row in rows:
        for fraction in fractions[row.name]:
            line = [row.name, *([f"{100 * fraction:g} %"] if has_fractions else [])]
            for number, column in enumerate(row.columns):
                line += [_number(column.paper, 1)] if has_paper else []
                line.append(_score(row, cell(results, row, number, fraction)))
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


def _number(value: Optional[float], digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
