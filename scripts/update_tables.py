"""
Replaces the tables of studies in Markdown pages by those of their kept results.

    python scripts/update_tables.py experiments/results README.md docs/results/*.md

FOLDER has `NAME/results.json` for each study. Between the lines `<!-- study NAME -->` and `<!--
/study -->` of a page come its tables; between `<!-- summary NAME -->` and `<!-- /summary -->`, its
summary.
"""

import argparse
import re
import sys
from pathlib import Path

from elmo_plugin.analysis.studies.results import Results
from elmo_plugin.analysis.studies.tables import score_tables, summary_table
from elmo_plugin.commands.metrics import markdown_table

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
from common import replace_tables  # noqa: E402


def update(folder: Path, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for kind, name in re.findall(r"<!-- (study|summary) (\w+) -->", text):
        results = Results(folder / name / "results.json")
        tables = score_tables(results) if kind == "study" else [summary_table(results)]
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
