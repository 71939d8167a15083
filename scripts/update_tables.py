"""
Replaces the tables of studies in Markdown pages by those of their kept results.

    python scripts/update_tables.py experiments/results README.md docs/results/*.md

FOLDER has `NAME/results.json` for each study. Between the lines `<!-- study NAME -->` and `<!--
/study -->` of a page come its tables; between `<!-- summary headlines -->` and `<!-- /summary -->`,
the summary of the main results; between `<!-- gaps headlines -->` and `<!-- /gaps -->`, how far its
models were apart on dev after each epoch, where most were still improving at the end.
"""

import argparse
import re
import statistics
import sys
from itertools import zip_longest
from pathlib import Path
from typing import List, Tuple

from elmo_plugin.analysis.studies.comparison import Share, shares
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.tables import Table, score_tables, summary_table
from elmo_plugin.commands.metrics import markdown_table

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
from common import replace_tables  # noqa: E402

# Study, row and share of the data. SNLI on 20 % in `table1` is not among them: its ten epochs are
# too few for the baseline. `figure1` trains for up to 32 epochs on 10 %, and 18 on 30 %.
HEADLINES = [
    ("table1", "NER", 1),
    ("table1", "SST", 1),
    ("figure1", "SNLI", 0.1),
    ("figure1", "SNLI", 0.3),
    ("table1", "SNLI", 1),
    ("table1", "SRL", 1),
    ("table1", "Coreference", 1),
    ("table1", "SQuAD, dev", 0.25),
]
# Of these, those with most runs still improving when they stopped.
IMPROVING = [("table1", "SNLI", 1), ("table1", "SRL", 1), ("table1", "SQuAD, dev", 0.25)]


def chosen(folder: Path, names: List[Tuple[str, str, float]]) -> List[Share]:
    studies = {name: Results(folder / name / "results.json") for name, _, _ in names}
    return [
        share
        for name, row, fraction in names
        for share in shares(studies[name], *studies[name].rows)
        if (share.row.name, share.fraction) == (row, fraction)
    ]


def gap_table(found: List[Share]) -> Table:
    """A line per share: dev scores of the best model minus the baseline's, means over seeds."""
    gaps = []
    for share in found:
        others = share.row.columns[share.row.num_baselines :]
        cells = [share.cells[name] for name in (share.baseline, share.best(others))]
        means = ([statistics.mean(each) for each in zip(*cell.histories)] for cell in cells)
        points = [f"{share.row.scale * (after - before):.1f}" for before, after in zip(*means)]
        gaps.append([share.name, *points])
    lines = [list(line) for line in zip(*zip_longest(*gaps, fillvalue=""))]
    return Table(["after epoch", *map(str, range(1, len(lines[0])))], lines)


def update(folder: Path, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for kind, name in re.findall(r"<!-- (study|summary|gaps) (\w+) -->", text):
        if kind == "summary":
            tables = [summary_table(chosen(folder, HEADLINES))]
        elif kind == "gaps":
            tables = [gap_table(chosen(folder, IMPROVING))]
        else:
            tables = score_tables(Results(folder / name / "results.json"))
        shown = "\n\n".join(markdown_table(t.head, t.lines, t.num_left) for t in tables)
        replace_tables(page, f"<!-- {kind} {name} -->", f"<!-- /{kind} -->", shown)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the results of studies")
    parser.add_argument("pages", type=Path, nargs="+", metavar="PAGE", help="Markdown file")
    arguments = parser.parse_args()
    for page in arguments.pages:
        update(arguments.folder, page)


if __name__ == "__main__":
    main()
