"""What predictors return, and how notebooks and the server's page show it."""

from contextlib import suppress
from html import escape
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union
from zlib import crc32

from allennlp.predictors import Predictor

_MARK = "color: black; padding: 0.1em 0.3em; border-radius: 0.3em; background: hsl({hue} 75% 82%)"
_BAR = (
    '<div style="width: 12em"><div style="height: 0.8em; width: {percent:.1f}%; '
    'background: hsl(210 60% 60%)"></div></div>'
)


class MarkedWords(NamedTuple):
    """Words with labelled spans: first word, last word and label. Spans may be nested."""

    words: Sequence[str]
    spans: Sequence[Tuple[int, int, str]] = ()
    #: Shown by the page only.
    title: str = ""


class Bars(NamedTuple):
    """Names and their numbers from 0 to 1."""

    bars: Sequence[Tuple[str, float]]
    title: str = ""


Part = Union[MarkedWords, Bars]


class Prediction(Dict[str, Any]):
    """
    JSON that a predictor returns. Notebooks show it as marked text and bar charts.
    `Prediction(json.loads(line))` shows a line that `allennlp predict` wrote.
    """

    #: The passage of a question, only to be shown: it is not part of the JSON.
    passage: str = ""

    def _repr_html_(self) -> Optional[str]:
        for name in Predictor.list_available():
            draw = getattr(Predictor.by_name(name), "draw", None)
            if draw is not None:
                # Raised for another task's prediction, or by a task that cannot be drawn.
                with suppress(KeyError, NotImplementedError):
                    return "".join(map(_html, draw(self)))
        return None


def _html(part: Part) -> str:
    """The HTML of a part. All text is escaped."""
    if isinstance(part, MarkedWords):
        return f"<p>{_marked(part)}</p>"
    rows = []
    for name, value in part.bars:
        cells = (escape(name), _BAR.format(percent=100 * value), f"{value:.3f}")
        row = "".join(f'<td style="text-align: left">{cell}</td>' for cell in cells)
        rows.append(f"<tr>{row}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _marked(part: MarkedWords) -> str:
    pieces: List[List[str]] = [[escape(word)] for word in part.words]
    # Outer spans come last, so that their marks enclose the inner ones.
    for first, last, label in sorted(part.spans, key=lambda span: (span[1] - span[0], -span[0])):
        hue = crc32(label.encode()) % 360
        pieces[first].insert(0, f'<mark style="{_MARK.format(hue=hue)}">')
        pieces[last].append(f" <small>{escape(label)}</small></mark>" if label else "</mark>")
    return " ".join("".join(of_word) for of_word in pieces)
