import json
from typing import Any, Dict, List, Optional

from elmo_plugin.analysis.neighbours import ContextIndex, Query, find_neighbours
from elmo_plugin.analysis.surprisal import DIRECTIONS, UNITS, Scorer
from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.serve.served_task import Limits

_NUM_NEIGHBOURS = 5


class WordAnalyzer:
    """
    Answers requests about a word in its sentence with a biLM: its surprisal, if the biLM has a
    softmax, and its nearest contexts in a text, if there is an index that was built with the biLM.
    """

    summary = "Surprisal and nearest contexts of a word in its sentence"
    example = {"words": ["They", "play", "chess"], "position": 1}
    schema = {
        "words": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
        "position": {"type": "integer", "minimum": 0},
    }

    def __init__(
        self,
        bilm: Bilm,
        softmax: Optional[SoftmaxWeights],
        index: Optional[ContextIndex],
        limits: Limits,
    ) -> None:
        self._bilm = bilm
        self._scorer = None if softmax is None else Scorer(bilm, softmax)
        self._index = index
        self._limits = limits
        if index is not None:
            index.check_bilm(bilm)

    def read(self, request: str) -> Query:
        """Reads and checks a request such as the example; positions count from 0."""
        example = json.dumps(self.example)
        line = parse_object(request, "the request", example)
        words: Any = line.get("words")
        position = line.get("position")
        are_words = isinstance(words, list) and all(
            isinstance(word, str) and word.split() == [word] for word in words
        )
        if not are_words or type(position) is not int or not 0 <= position < len(words):
            raise ValueError(
                'the request: expected "words", a list of words without white space, and the '
                f'"position" of one of them, counted from 0, as in {example}.'
            )
        self._limits.check_words([words])
        return Query(tuple(words), position)

    def answer(self, queries: List[Query]) -> List[str]:
        """
        For each query `surprisal` in bits, forward, backward and the mean of both; `known`, whether
        the word is in the vocabulary; and `neighbours`, by layer, the contexts with their `cosine`,
        `line`, `position` and `words`. Without a softmax, the first two are `null`; without an
        index, `neighbours` is.
        """
        found = [
            {**self._surprisal(each), "neighbours": self._neighbours(each)} for each in queries
        ]
        return [json.dumps(each, ensure_ascii=False) + "\n" for each in found]

    def _surprisal(self, query: Query) -> Dict[str, Any]:
        if self._scorer is None:
            return {"surprisal": None, "known": None}
        (score,) = self._scorer.score([query.words])
        nats = {name: float(getattr(score, name)[query.position]) for name in DIRECTIONS}
        bits = {name: value * UNITS["bits"] for name, value in nats.items()}
        return {"surprisal": bits, "known": score.known[query.position]}

    def _neighbours(self, query: Query) -> Optional[Dict[str, Any]]:
        if self._index is None:
            return None
        (found,) = find_neighbours(self._index, self._bilm, [query], _NUM_NEIGHBOURS)
        return found.to_json()
