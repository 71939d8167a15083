"""Tables for papers."""

import re
from typing import Sequence

_COMMANDS = str.maketrans(
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


def latex_table(head: Sequence[str], rows: Sequence[Sequence[str]], num_left: int) -> str:
    """A table for the package booktabs. Columns after the first `num_left` are right-aligned."""
    lines = [" & ".join(map(_escaped, cells)) + r" \\" for cells in [head, *rows]]
    columns = "l" * num_left + "r" * (len(head) - num_left)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _escaped(cell: str) -> str:
    # A hyphen before a number is a minus sign.
    return re.sub(r"(?<![^ ])-(?=\d)", "$-$", cell.translate(_COMMANDS))
