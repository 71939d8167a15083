"""Tables that commands print and write."""

import re
from pathlib import Path
from typing import List, Sequence, Tuple

from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError

_LATEX = str.maketrans(
    {
        **{special: f"\\{special}" for special in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "±": r"$\pm$",
        "λ": r"$\lambda$",
        "³": r"$^3$",
    }
)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], num_left: int) -> str:
    """A table in Markdown. The columns after the first `num_left` are aligned to the right."""
    rule = ["---" if number < num_left else "---:" for number in range(len(head))]
    lines: List[Sequence[str]] = [head, rule, *rows]
    escaped = ([cell.replace("|", r"\|") for cell in cells] for cells in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]], num_left: int) -> str:
    """A table for the package booktabs, aligned like `markdown_table`."""

    def line(cells: Sequence[str]) -> str:
        escaped = (cell.translate(_LATEX) for cell in cells)
        # A hyphen before a number is a minus sign.
        return " & ".join(re.sub(r"(?<![^ ])-(?=\d)", "$-$", cell) for cell in escaped) + r" \\"

    columns = "l" * num_left + "r" * (len(head) - num_left)
    begin = rf"\begin{{tabular}}{{{columns}}}"
    body = [r"\toprule", line(head), r"\midrule", *map(line, rows), r"\bottomrule"]
    return "\n".join([begin, *body, r"\end{tabular}"])


def aligned(rows: Sequence[Sequence[str]]) -> List[str]:
    """Lines of cells, the first column aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])] for name, *cells in rows)
    return ["  ".join(line).rstrip() for line in lines]


def replace_tables(path: Path, begin: str, end: str, tables: str) -> None:
    """Replaces the text between two lines of a Markdown file; errors as for `around_tables`."""
    before, after = around_tables(path, begin, end)
    with atomic_write(path) as unfinished:
        text = f"{before}{begin}\n\n{tables}\n\n{end}{after}"
        unfinished.write_text(text, encoding="utf-8")


def around_tables(path: Path, begin: str, end: str) -> Tuple[str, str]:
    """
    The text of a Markdown file before the line `begin` and after the line `end`. Raises
    `ConfigurationError` unless `begin` occurs once and `end` follows before another comment.
    """
    text = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"{re.escape(begin)}\n(?:(?!<!-- ).)*?{re.escape(end)}", re.DOTALL)
    found = pattern.search(text)
    if text.count(begin) != 1 or not found:
        raise ConfigurationError(f"{path}: expected one line {begin} and a line {end} after it.")
    return text[: found.start()], text[found.end() :]
