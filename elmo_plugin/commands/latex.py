"""Tables for papers."""

import re
from typing import Sequence

_SPECIAL = re.compile(r"([&%$#_{}])")
_SYMBOLS = {"±": r"$\pm$", "λ": r"$\lambda$", "³": r"$^3$", "~": r"\textasciitilde{}"}


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


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", text.replace("\\", r"\textbackslash "))
    for symbol, command in _SYMBOLS.items():
        text = text.replace(symbol, command)
    return text
