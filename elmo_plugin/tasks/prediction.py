from html import escape
from typing import Any, Dict, List, Optional, Sequence

from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.util.html import bars, mark, marked_words, paragraphs


class Prediction(Dict[str, Any]):
    """
    What a predictor returns: JSON, which a notebook shows as highlighted text and bar charts. To
    show a line of JSON that `allennlp predict` wrote: `Prediction(json.loads(line))`.
    """

    #: The passage that a question is about, shown in notebooks. It is not part of the JSON.
    passage: str = ""

    def _repr_html_(self) -> Optional[str]:
        for field, show in _SHOWN.items():
            if field in self and not self.keys().isdisjoint(_TEXTS):
                return show(self)
        return None


def _entities(prediction: Prediction) -> str:
    spans = ((each["start"], each["end"], each["type"]) for each in prediction["entities"])
    return paragraphs(marked_words(prediction["tokens"], spans))


def _frames(prediction: Prediction) -> str:
    return paragraphs(*(_roles(prediction["tokens"], each) for each in prediction["frames"]))


def _frame(prediction: Prediction) -> str:
    return paragraphs(_roles(prediction["tokens"], prediction))


def _roles(words: Sequence[str], frame: Dict[str, Any]) -> str:
    return marked_words(words, ((e.start, e.end, e.label) for e in tags_to_spans(frame["tags"])))


def _clusters(prediction: Prediction) -> str:
    spans: List[list] = [[] for _ in prediction["sentences"]]
    for number, cluster in enumerate(prediction["clusters"]):
        for each in cluster:
            spans[each["sentence"]].append((each["start"], each["end"], str(number)))
    return paragraphs(*map(marked_words, prediction["sentences"], spans))


def _answers(prediction: Prediction) -> str:
    passage, start, end = prediction.passage, prediction["start"], prediction["end"]
    answer = mark(prediction["answer"], "")
    shown = f"{escape(passage[:start])}{answer}{escape(passage[end:])}" if passage else answer
    best = [(each["answer"], each["probability"]) for each in prediction["n_best"]]
    return paragraphs(shown) + bars(best)


def _probabilities(prediction: Prediction) -> str:
    texts = [escape(" ".join(prediction[name])) for name in _TEXTS if name in prediction]
    return paragraphs(*texts) + bars(prediction["probabilities"].items())


# The functions that show each kind of prediction, by a field that no other kind has. A dictionary
# with such a field but none of the fields of `_TEXTS` is not a whole prediction and is not shown.
_SHOWN = {
    "entities": _entities,
    "frames": _frames,
    "predicate": _frame,
    "clusters": _clusters,
    "n_best": _answers,
    "probabilities": _probabilities,
}
_TEXTS = ("tokens", "premise_tokens", "hypothesis_tokens", "sentences", "answer")
