"""Whether models are better than those they are compared with: docs/results/README.md."""

import math
import statistics
from typing import Dict, List, Mapping, NamedTuple, Optional

from elmo_plugin.analysis.studies.comparison import Cell, Share, shares
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.util.bootstrap import Difference, Interval

VERDICTS = ("holds", "does not hold", "undecided", "undecided (too few epochs)")


class Finding(NamedTuple):
    """The claim that a model is better than another. `verdict` is one of `VERDICTS`."""

    #: The row, and its share of the data if there are several.
    where: str
    model: str
    base: str
    difference: Difference
    verdict: str
    #: Whether the model is, of those that are compared, the best on dev.
    is_main: bool = True


def verdict(interval: Interval, lower_is_better: bool = False) -> str:
    """Whether the interval of a difference is on the right side of zero."""
    if interval.low <= 0 <= interval.high:
        return VERDICTS[2]
    return VERDICTS[(interval.high < 0) != lower_is_better]


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
        row, others = share.row, share.row.columns[share.row.num_baselines :]
        for column in others:
            compared = share.difference(column, share)
            if compared is not None and compared.interval is not None:
                decided = verdict(compared.interval, row.lower_is_better)
                if _lead_is_new(share.cells[column.name], share.cells[compared.base]):
                    decided = VERDICTS[2]
                if has_too_few_epochs(share, epochs.get(row.name, 0)):
                    decided = VERDICTS[3]
                # As fractions, which are shown in percent.
                value, *bounds = (row.scale / 100 * x for x in (compared.mean, *compared.interval))
                difference = Difference(value, Interval(*bounds))
                names = (share.name, column.name, compared.base)
                is_main = column.name == share.best(others)
                found.append(Finding(*names, difference, decided, is_main))
    return found


def has_too_few_epochs(share: Share, on_all: int) -> bool:
    """Whether a part of the data has no more epochs, which are shorter, and a run still rose."""
    known = _histories(share)
    is_short = share.fraction < 1 and all(len(history) <= on_all for history in known)
    return is_short and any(history[-1] == max(history) for history in known)


def _histories(share: Share) -> List[List[float]]:
    return [history for cell in share.cells.values() for history in cell.histories]


def _lead_is_new(one: Cell, other: Cell) -> bool:
    """Whether the better model on dev took the lead in the last epoch."""

    def leads(end: Optional[int]) -> bool:
        best = ([max(h[:end], default=-math.inf) for h in c.histories] for c in (one, other))
        return statistics.mean(next(best)) > statistics.mean(next(best))

    return bool(one.histories and other.histories) and leads(None) != leads(-1)
