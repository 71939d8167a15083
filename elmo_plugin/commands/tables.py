"""Tables that commands print and write."""

from typing import List, Sequence


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
