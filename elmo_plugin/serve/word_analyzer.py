import json
from typing import Any, Dict, List, Optional, Sequence

from elmo_plugin.analysis.neighbours import ContextIndex, Query, find_neighbours
from elmo_plugin.analysis.surprisal import DIRECTIONS, UNITS, Scorer
from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.serve.requests import Limits
from elmo_plugin.serve.worker import Outcome, model_failed

_NUM_NEIGHBOURS = 5
_EXAMPLE = '{"words": ["They", "play", "chess"], "position": 1}'
_BITS = UNITS["bits"]


class WordAnalyzer:
    """
    Answers requests about a word in its sentence with a biLM: its surprisal, and its nearest
    contexts in a text.

    # Parameters

    bilm : `Bilm`
    softmax : `Optional[SoftmaxWeights]`
        That of the biLM; without it there are no surprisals.
    index : `Optional[ContextIndex]`
        Built with the biLM; without it there are no nearest contexts.
    limits : `Limits`
    """

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

    def answer(self, requests: Sequence[str]) -> List[Outcome]:
        """
        For each `{"words": […], "position": 1}`, positions from 0: `surprisal` in bits, forward,
        backward and the mean of both; `known`, whether the word is in the vocabulary; and
        `neighbours`, by layer, the contexts with their `cosine`, `line`, `position` and `words`.
        Without a softmax, the first two are `null`; without an index, `neighbours` is.
        """
        return [self._answer_one(request) for request in requests]

    def _answer_one(self, request: str) -> Outcome:
        try:
            query = self._read(request)
        except Exception as error:
            return error
        try:
            found = {**self._surprisal(query), "neighbours": self._neighbours(query)}
            return json.dumps(found, ensure_ascii=False) + "\n"
        except Exception as error:
            return model_failed(error)

    def _read(self, request: str) -> Query:
        line = parse_object(request, "the request", _EXAMPLE)
        words: Any = line.get("words")
        position = line.get("position")
        are_words = isinstance(words, list) and all(
            isinstance(word, str) and word.split() == [word] for word in words
        )
        if not are_words or type(position) is not int or not 0 <= position < len(words):
            raise ValueError(
                'the request: expected "words", a list of words without white space, and the '
                f'"position" of one of them, counted from 0, as in {_EXAMPLE}.'
            )
        self._limits.check_words([words])
        return Query(tuple(words), position)

    def _surprisal(self, query: Query) -> Dict[str, Any]:
        if self._scorer is None:
            return {"surprisal": None, "known": None}
        (score,) = self._scorer.score([query.words])
        bits = {name: float(getattr(score, name)[query.position]) * _BITS for name in DIRECTIONS}
        return {"surprisal": bits, "known": score.known[query.position]}

    def _neighbours(self, query: Query) -> Optional[Dict[str, Any]]:
        if self._index is None:
            return None
        (found,) = find_neighbours(self._index, self._bilm, [query], _NUM_NEIGHBOURS)
        return found.to_json()
