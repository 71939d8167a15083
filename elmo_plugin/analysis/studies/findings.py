"""Whether models are better than those they are compared with: docs/results/README.md."""

import math
import statistics
from typing import Dict, List, Mapping, NamedTuple

from elmo_plugin.analysis.studies.comparison import Cell, Share, shares
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.util.bootstrap import Difference, Interval

VERDICTS = ("holds", "does not hold", "undecided", "undecided (too few epochs)")


class Finding(NamedTuple):
    """The claim that a model is better than another."""

    #: The row, and its share of the data if there are several.
    where: str
    model: str
    base: str
    difference: Difference
    #: One of `VERDICTS`.
    verdict: str
    #: Of the models that are compared, the best on dev.
    is_main: bool = True


def verdict(interval: Interval, lower_is_better: bool = False) -> str:
    """Whether the interval of a difference is on the right side of zero."""
    if interval.low <= 0 <= interval.high:
        return VERDICTS[2]
    return VERDICTS[0] if (interval.high < 0) == lower_is_better else VERDICTS[1]


def note_epochs(results: Results, epochs: Dict[str, int]) -> None:
    """Raises `epochs`, by the name of the row, to the most of any run on all training data."""
    for share in shares(results, *results.rows):
        if share.fraction == 1:
            name = share.row.name
            epochs[name] = max([epochs.get(name, 0), *map(len, _histories(share))])


def findings(results: Results, epochs: Mapping[str, int]) -> List[Finding]:
    """The comparisons of a study that have an interval. `epochs`: of `note_epochs`."""
    found = []
    for share in shares(results, *(row for row in results.rows if row.compare)):
        row, histories = share.row, _histories(share)
        # An epoch on less data has fewer steps.
        is_short = share.fraction < 1 and all(len(h) <= epochs.get(row.name, 0) for h in histories)
        has_too_few = is_short and any(h[-1] == max(h) for h in histories)
        others = row.columns[row.num_baselines :]
        for column in others:
            compared = share.difference(column, share)
            if compared is None or compared.interval is None:
                continue
            decided = verdict(compared.interval, row.lower_is_better)
            if has_too_few:
                decided = VERDICTS[3]
            elif _lead_is_new(share.cells[column.name], share.cells[compared.base]):
                decided = VERDICTS[2]
            # As fractions, which are shown in percent.
            value, *bounds = (row.scale / 100 * x for x in (compared.mean, *compared.interval))
            names = share.name, column.name, compared.base
            is_main = column.name == share.best(others)
            found.append(Finding(*names, Difference(value, Interval(*bounds)), decided, is_main))
    return found


def _histories(share: Share) -> List[List[float]]:
    return [history for cell in share.cells.values() for history in cell.histories]


def _lead_is_new(*cells: Cell) -> bool:
    """Whether the better of two models on dev took the lead in the last epoch."""
    if not all(cell.histories for cell in cells):
        return False
    now, before = (
        [statistics.mean(max(h[:end], default=-math.inf) for h in c.histories) for c in cells]
        for end in (None, -1)
    )
    return (now[0] > now[1]) != (before[0] > before[1])
