"""
Renders benchmarks/results.json as the table of benchmarks/README.md, between its two markers.

    python benchmarks/table.py
    python benchmarks/table.py --results results.json --readme README.md
"""

from pathlib import Path
from typing import Dict, List, Optional

from common import Row, argument_parser, read_rows, replace_tables

FOLDER = Path(__file__).resolve().parent
HEAD = [
    "| what | unit | ours | peer | ratio | of limit | floor | aim |",
    "| --- | --- | ---: | ---: | ---: | ---: | --- | --- |",
]


def format_number(value: Optional[float]) -> str:
    """Three significant digits; integers from 100 on."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def format_requirement(row: Row, requirement: Optional[str]) -> str:
    if requirement is None:
        return ""
    return f"{requirement}, {'met' if row.meets(requirement) else '**missed**'}"


def format_row(row: Row) -> str:
    cells = [
        row.name,
        row.unit,
        format_number(row.ours),
        format_number(row.peer),
        "" if row.ratio is None else f"{row.ratio:.2f}x",
        "" if row.share_of_limit is None else f"{row.share_of_limit:.0%}",
        format_requirement(row, row.floor),
        format_requirement(row, row.aim),
    ]
    return f"| {' | '.join(cells)} |"


def summary(rows: List[Row]) -> str:
    """The number of floors and aims, and the missed ones."""
    sentences = []
    for label, name in (("Floors", "floor"), ("Aims", "aim")):
        asked = [row for row in rows if getattr(row, name) is not None]
        missed = [row.name for row in asked if not row.meets(getattr(row, name))]
        met = f"{label} met: {len(asked) - len(missed)} of {len(asked)}."
        sentences.append(f"{met} Missed: {'; '.join(missed)}." if missed else met)
    return "\n\n".join(sentences)


def render(rows: List[Row]) -> str:
    """One table per machine, set of versions and day, and a summary."""
    groups: Dict[str, List[Row]] = {}
    for row in rows:
        names = ", ".join(f"{name} {version}" for name, version in row.versions.items())
        groups.setdefault(f"{row.machine}; {names}; {row.date}:", []).append(row)
    parts = [
        "\n".join([caption, "", *HEAD, *map(format_row, group)])
        for caption, group in groups.items()
    ]
    return "\n\n".join([*parts, summary(rows)])


def update(readme: Path, rows: List[Row]) -> None:
    replace_tables(readme, "<!-- results -->", "<!-- /results -->", render(rows))


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--results", type=Path, default=FOLDER / "results.json")
    parser.add_argument("--readme", type=Path, default=FOLDER / "README.md")
    arguments = parser.parse_args()
    if not arguments.results.exists():
        raise SystemExit(f"{arguments.results} does not exist. Run `make bench`.")
    update(arguments.readme, read_rows(arguments.results))


if __name__ == "__main__":
    main()
