"""The tables of a study as text cells, before they are written as Markdown, LaTeX or HTML."""

import statistics
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence

from elmo_plugin.analysis.studies.comparison import Cell, Share, holm, shares
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.study import Column, Row

# A line has the text of each cell by the head of its column.
_Line = Dict[str, str]
_WORDS = ["", "data", "model"]
_DIFFERENCE = ["difference", "95 %", "error reduction", "error reduction, paper"]


@dataclass(frozen=True)
class Table:
    """A table of text cells."""

    head: List[str]
    lines: List[List[str]]
    #: The first columns have words and are left-aligned; the others have numbers.
    num_left: int = 1


def score_tables(results: Results) -> List[Table]:
    """
    Builds two tables: rows whose columns are compared, with a line per column, and the other rows.
    Both show means and sample standard deviations over seeds, and the paper's scores beside the
    full data only. `epochs to baseline` counts epochs until a model reaches the baseline's best
    score on dev, as a mean over the seeds that reach it; section 5.4 of the paper counts updates. A
    share of the data without scores has no lines if another share of its row has scores.
    """
    lines = _lines([row for row in results.rows if row.compare], results, _compared)
    last = ["compared with", "best on dev", "epochs to baseline"]
    others = [row for row in results.rows if not row.compare]
    tables = [
        _table([*_WORDS, "paper", "score", "seeds", *_DIFFERENCE, *last], lines),
        _wide_table(results, others),
    ]
    return [table for table in tables if table.lines]


def summary_table(found: Sequence[Share]) -> Table:
    """
    A line per share: the baseline, and the column with the best score on dev among the columns
    compared with it. The p-value is corrected for the number of lines. The paper's error reduction
    is from the first column that has one. There is no line if either lacks scores, or if several
    columns have scores but not all on dev.
    """
    head = ["", "data", "baseline", "score", "best model", "its score", "seeds"]
    lines = [line for share in found for line in _summary(share)]
    tested = [line for line in lines if "p" in line]
    for line, p_value in zip(tested, holm([float(line["p"]) for line in tested])):
        line["p"] = f"{p_value:.3f}" if p_value > 0.001 else "≤ 0.001"
    return _table([*head, *_DIFFERENCE[:2], "p", *_DIFFERENCE[2:]], lines)


def _lines(rows: List[Row], results: Results, of_share: Callable[..., List[_Line]]) -> List[_Line]:
    """Collects the lines of `of_share`. Only the first line of a row, or of a share, names it."""
    lines: List[_Line] = []
    for row in rows:
        name, known = row.name, shares(results, row)
        for share in [each for each in known if each.cells] or known:
            data = f"{100 * share.fraction:g} %"
            for line in of_share(share):
                lines.append({**line, "": name, "data": data})
                name = data = ""
    return lines


def _compared(share: Share) -> List[_Line]:
    lines = []
    row, goal = share.row, share.cells.get(share.baseline)
    for number, column in enumerate(row.columns):
        line = {"model": column.name, "paper": _as_printed(column.paper), "score": "-"}
        if found := share.cells.get(column.name):
            line["score"] = _mean(row, found)
            line["seeds"] = str(len(found.values))
            line["best on dev"] = "" if found.on_dev is None else f"{row.scale * found.on_dev:.2f}"
            # This assumes that scores rise: if lower is better, there is no number.
            if goal is not None and not row.lower_is_better:
                line["epochs to baseline"] = _epochs(goal.histories, found.histories)
        if number >= row.num_baselines:
            line.update(_difference(share, column))
        lines.append(line)
    return lines


def _summary(share: Share) -> List[_Line]:
    if not share.row.compare:
        return []
    others = [each for each in share.row.columns[share.row.num_baselines :] if not each.against]
    scored = [share.cells[each.name] for each in others if each.name in share.cells]
    is_known = len(scored) == 1 or all(found.on_dev is not None for found in scored)
    if not scored or not is_known or share.baseline not in share.cells:
        return []
    lines = {line["model"]: line for line in _compared(share)}
    before, after = lines[share.baseline], lines[share.best(others)]
    papers = map(share.paper_error_reduction, others)
    return [
        {
            **after,
            "": share.row.name,
            "data": f"{100 * share.fraction:g} %",
            "baseline": before["model"],
            "score": before["score"],
            "best model": after["model"],
            "its score": after["score"],
            "seeds": f"{before['seeds']}, {after['seeds']}",
            "error reduction, paper": _percent(next((p for p in papers if p is not None), None)),
        }
    ]


def _difference(share: Share, column: Column) -> _Line:
    found = share.difference(column, share)
    if found is None:
        return {}
    scale = share.row.scale
    line = {"compared with": found.base, "difference": f"{scale * found.mean:+.2f}"}
    if found.interval is not None:
        low, high = (scale * bound for bound in found.interval)
        line["95 %"] = f"{low:+.2f} to {high:+.2f}"
        line["p"] = str(found.p_value)
    if found.error_reduction is not None:
        line["error reduction"] = _percent(found.error_reduction)
        line["error reduction, paper"] = _percent(share.paper_error_reduction(column))
    return line


def _percent(share: Optional[float]) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _as_printed(score: Optional[float]) -> str:
    """Scores have one decimal in the paper, and two for NER."""
    return "" if score is None else max(f"{score:.1f}", f"{score:g}", key=len)


def _epochs(of_baseline: List[List[float]], histories: List[List[float]]) -> str:
    """`3.5`, the mean over seeds; `3.5 (2 of 3)` if only two of three reach the baseline."""
    if not of_baseline or not histories:
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


def _wide_table(results: Results, rows: List[Row]) -> Table:
    """A line per row and fraction, with a cell for each column's score and the paper's."""
    # The prefixes keep these keys apart from other cells, whatever a column is called.
    head: Dict[str, str] = {}
    for row in rows:
        for column in row.columns:
            head[f"paper: {column.name}"] = f"{column.name}, paper"
            head[f"score: {column.name}"] = column.name
    return _table([*_WORDS, *head, "seeds"], _lines(rows, results, _side_by_side), head)


def _side_by_side(share: Share) -> List[_Line]:
    cells, columns = share.cells, share.row.columns
    line = {f"paper: {column.name}": _as_printed(column.paper) for column in columns}
    line.update((f"score: {name}", _mean(share.row, found)) for name, found in cells.items())
    seeds = [str(len(found.values)) for found in cells.values()]
    # One number if it is the same for all columns.
    line["seeds"] = ", ".join(seeds if len(set(seeds)) > 1 else seeds[:1])
    return [line] if any(line.values()) else []


def _mean(row: Row, found: Cell) -> str:
    deviation = "" if found.deviation is None else f" ± {row.scale * found.deviation:.2f}"
    return f"{row.scale * found.mean:.2f}{deviation}"


def _table(columns: List[str], lines: List[_Line], heads: Mapping[str, str] = {}) -> Table:
    """Leaves out empty columns, and `data` if it is 100 % everywhere. `heads` rename columns."""
    used = [
        name
        for name in columns
        if any(line.get(name) for line in lines)
        and not (name == "data" and {line[name] for line in lines} <= {"", "100 %"})
    ]
    num_left = len([name for name in used if name in _WORDS])
    texts = [[line.get(name, "") for name in used] for line in lines]
    return Table([heads.get(name, name) for name in used], texts, num_left)
