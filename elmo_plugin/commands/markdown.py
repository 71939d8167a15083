"""Tables that commands print."""

from typing import List, Sequence


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], num_left: int) -> str:
    """A table in Markdown. The columns after the first `num_left` are aligned to the right."""
    rule = ["---" if number < num_left else "---:" for number in range(len(head))]
    lines: List[Sequence[str]] = [head, rule, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
