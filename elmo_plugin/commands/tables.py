"""Tables that commands print and write."""

import re
from pathlib import Path
from typing import List, Sequence

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], num_left: int) -> str:
    """A table in Markdown. The columns after the first `num_left` are aligned to the right."""
    rule = ["---" if number < num_left else "---:" for number in range(len(head))]
    lines: List[Sequence[str]] = [head, rule, *rows]
    escaped = ([cell.replace("|", r"\|") for cell in cells] for cells in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def aligned(rows: Sequence[Sequence[str]]) -> List[str]:
    """Lines of cells, the first column aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])] for name, *cells in rows)
    return ["  ".join(line).rstrip() for line in lines]


def replace_tables(path: Path, begin: str, end: str, tables: str) -> None:
    """
    Replaces the text between the lines `begin` and `end` of a Markdown file. Raises
    `ConfigurationError` unless `begin` occurs once and `end` follows before another comment.
    """
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"{re.escape(begin)}\n(?:(?!<!-- ).)*?{re.escape(end)}", re.DOTALL)
    found = pattern.search(text)
    if text.count(begin) != 1 or not found:
        raise ConfigurationError(f"{path}: expected one line {begin} and a line {end} after it.")
    before, after = text[: found.start()], text[found.end() :]
    with atomic_write(path) as unfinished:
        text = f"{before}{begin}\n\n{tables}\n\n{end}{after}"
        unfinished.write_text(text, encoding="utf-8")
