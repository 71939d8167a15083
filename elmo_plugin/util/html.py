"""Builds the HTML that notebooks show. All text is escaped."""

from html import escape
from typing import Iterable, List, Sequence, Tuple
from zlib import crc32

_MARK = "color: black; padding: 0.1em 0.3em; border-radius: 0.3em; background: hsl({hue} 75% 82%)"
_BAR = (
    '<div style="width: 12em"><div style="height: 0.8em; width: {percent:.1f}%; '
    'background: hsl(210 60% 60%)"></div></div>'
)


def marked_words(words: Sequence[str], spans: Iterable[Tuple[int, int, str]]) -> str:
    """Joins words and marks spans `(first, last, label)`, `last` included, which may be nested."""
    pieces: List[List[str]] = [[escape(word)] for word in words]
    # Outer spans come last, so that their marks enclose the inner ones.
    for first, last, label in sorted(spans, key=lambda span: (span[1] - span[0], -span[0])):
        pieces[first].insert(0, _open(label))
        pieces[last].append(_close(label))
    return " ".join("".join(of_word) for of_word in pieces)


def paragraphs(*lines: str) -> str:
    """Makes each piece of HTML a paragraph."""
    return "".join(f"<p>{line}</p>" for line in lines)


def bars(values: Iterable[Tuple[str, float]]) -> str:
    """A table of names and numbers from 0 to 1, each with a bar."""
    rows = [(escape(n), _BAR.format(percent=100 * v), f"{v:.3f}") for n, v in values]
    return table((), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Cells of `head` are text, cells of `rows` are HTML."""
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = [f"<tr>{cells}</tr>"] if head else []
    for row in rows:
        cells = "".join(f'<td style="text-align: left">{cell}</td>' for cell in row)
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _open(label: str) -> str:
    return f'<mark style="{_MARK.format(hue=crc32(label.encode()) % 360)}">'


def _close(label: str) -> str:
    return f" <small>{escape(label)}</small></mark>" if label else "</mark>"
