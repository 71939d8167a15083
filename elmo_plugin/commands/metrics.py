"""How metrics and other tables are printed."""

import re
from typing import Any, Dict, List, Sequence

# The metric of a task comes first; its loss, which differs between models, last.
_FIRST = ("f1-measure-overall", "coref_f1", "f1", "accuracy", "perplexity")
_KINDS = ("precision", "recall", "f1-measure")
_OF_LABEL = re.compile(rf"({'|'.join(_KINDS)})-(?!overall$)(.+)")


def format_metrics(metrics: Dict[str, Any]) -> str:
    """
    A line for each metric, the task's headline first, and a table of precision, recall and F1 by
    label, if there are such. Fractions, as in JSON, with four decimals. Names that begin with `_`
    are left out.
    """
    by_label: Dict[str, Dict[str, Any]] = {}
    others = {}
    for name, value in metrics.items():
        if found := _OF_LABEL.fullmatch(name):
            by_label.setdefault(found[2], {})[found[1]] = value
        elif not name.startswith("_"):
            others[name] = value
    names = [name for name in _FIRST if name in others]
    names += sorted(others.keys() - set(_FIRST), key=lambda name: ("loss" in name, name))
    lines = aligned([[name, _number(others[name])] for name in names])
    if by_label:
        rows = [[label, *(_number(of[k]) for k in _KINDS)] for label, of in by_label.items()]
        lines += ["", *aligned([["label", *_KINDS], *rows])]
    return "\n".join(lines)


def _number(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


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
