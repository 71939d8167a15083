"""
Replaces the tables of studies in Markdown pages by those of their kept results.

    python scripts/update_tables.py experiments/results README.md docs/results/*.md

FOLDER has `NAME/results.json` for each study. Between the lines `<!-- study NAME -->` and `<!--
/study -->` of a page come its tables; between `<!-- summary headlines -->` and `<!-- /summary -->`,
the summary of the main results.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import List

from elmo_plugin.analysis.studies.comparison import Share, shares
from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.tables import score_tables, summary_table
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


def headlines(folder: Path) -> List[Share]:
    studies = {name: Results(folder / name / "results.json") for name, _, _ in HEADLINES}
    return [
        share
        for name, row, fraction in HEADLINES
        for share in shares(studies[name], *studies[name].rows)
        if (share.row.name, share.fraction) == (row, fraction)
    ]


def update(folder: Path, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for kind, name in re.findall(r"<!-- (study|summary) (\w+) -->", text):
        if kind == "summary":
            tables = [summary_table(headlines(folder))]
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
