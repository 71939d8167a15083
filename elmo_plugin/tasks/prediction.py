"""What predictors return, and how notebooks and the server's page show it."""

from contextlib import suppress
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from allennlp.predictors import Predictor

from elmo_plugin.util.html import bars, marked_words, paragraphs


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
    if isinstance(part, Bars):
        return bars(part.bars)
    return paragraphs(marked_words(part.words, part.spans))
